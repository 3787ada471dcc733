import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** A member of a share group, until it is ended: BOOTSTRAP GROUP TOPIC. */
public final class ShareMember {
    private ShareMember() {}

    public static void main(String[] words) {
        Map<String, Object> settings = Map.of("bootstrap.servers", words[0], "group.id", words[1]);
        var bytes = new ByteArrayDeserializer();
        try (var consumer = new KafkaShareConsumer<>(settings, bytes, bytes)) {
            consumer.subscribe(List.of(words[2]));
            while (true) {
                consumer.poll(Duration.ofSeconds(1));
            }
        }
    }
}
