import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** A consumer that takes one message every 250 ms and commits it, until it is ended: BOOTSTRAP GROUP TOPIC. */
public final class SlowMember {
    private SlowMember() {}

    public static void main(String[] words) throws InterruptedException {
        Map<String, Object> settings =
                Map.of(
                        "bootstrap.servers", words[0],
                        "group.id", words[1],
                        "auto.offset.reset", "earliest",
                        "max.poll.records", 1,
                        // Its lag is that of its last fetch: a few messages each, so that it is a second old.
                        "max.partition.fetch.bytes", 200);
        var bytes = new ByteArrayDeserializer();
        try (var consumer = new KafkaConsumer<>(settings, bytes, bytes)) {
            consumer.subscribe(List.of(words[2]));
            while (true) {
                consumer.poll(Duration.ofSeconds(1));
                consumer.commitSync();
                Thread.sleep(250);
            }
        }
    }
}
