import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;

/** A Kafka Streams application in a group of the streams protocol, until it is ended: BOOTSTRAP GROUP TOPIC FOLDER. */
public final class StreamsMember {
    private StreamsMember() {}

    public static void main(String[] words) {
        var settings = new Properties();
        settings.put("bootstrap.servers", words[0]);
        settings.put("application.id", words[1]);
        settings.put("state.dir", words[3]);
        settings.put("group.protocol", "streams");
        settings.put("commit.interval.ms", "200");
        settings.put("auto.offset.reset", "earliest");
        var plan = new StreamsBuilder();
        plan.stream(words[2], Consumed.with(Serdes.ByteArray(), Serdes.ByteArray())).foreach((key, value) -> {});
        new KafkaStreams(plan.build(), settings).start();
    }
}
