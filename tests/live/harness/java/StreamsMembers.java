import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/**
 * Replicas of Kafka Streams applications of the classic protocol, one thread each, that take the commands of
 * BatchMembers: BOOTSTRAP FOLDER.
 *
 * <p>TOPIC may be several, joined by a comma, which one sub-topology reads. PROTOCOL is "stateful", with the last value of
 * each key in a store, or "stateless". A record takes RECORD_MICROS. State lies in FOLDER under the replica's name.
 */
public final class StreamsMembers {
    private static final String STORE = "last";

    private StreamsMembers() {}

    public static void main(String[] words) throws IOException {
        var replicas = new HashMap<String, KafkaStreams>();
        var orders = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        System.out.println("ready");
        for (var line = orders.readLine(); line != null; line = orders.readLine()) {
            var order = line.split(" ");
            if (order[0].equals("start")) {
                var replica = new KafkaStreams(plan(order), settings(words[0], words[1], order));
                replicas.put(order[1], replica);
                replica.start();
            } else {
                new Thread(replicas.remove(order[1])::close).start();
            }
        }
        replicas.values().parallelStream().forEach(KafkaStreams::close);
    }

    private static Properties settings(String bootstrap, String folder, String[] order) {
        var settings = new Properties();
        settings.putAll(Map.of(
                "bootstrap.servers", bootstrap,
                "application.id", order[2],
                "state.dir", folder + "/" + order[1],
                "auto.offset.reset", "earliest"));
        if (!order[7].equals("-")) {
            settings.put("group.instance.id", order[7]);
        }
        for (int place = 8; place < order.length; place++) {
            var setting = order[place].split("=", 2);
            settings.put(setting[0], setting[1]);
        }
        return settings;
    }

    private static Topology plan(String[] order) {
        var plan = new StreamsBuilder();
        var bytes = Serdes.ByteArray();
        var micros = Long.parseLong(order[6]);
        var records = plan.stream(List.of(order[3].split(",")), Consumed.with(Serdes.Bytes(), bytes));
        if (order[4].equals("stateful")) {
            plan.addStateStore(
                    Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore(STORE), Serdes.Bytes(), bytes));
            records.process(() -> new Keeper(micros), STORE);
        } else {
            records.foreach((key, value) -> work(micros));
        }
        return plan.build();
    }

    private static void work(long micros) {
        try {
            Thread.sleep(micros / 1000, (int) (micros % 1000) * 1000);
        } catch (InterruptedException cause) {
            throw new IllegalStateException(cause);
        }
    }

    private static final class Keeper extends ContextualProcessor<Bytes, byte[], Void, Void> {
        private final long micros;

        Keeper(long micros) {
            this.micros = micros;
        }

        @Override
        public void process(Record<Bytes, byte[]> record) {
            work(micros);
            if (record.key() != null) {
                KeyValueStore<Bytes, byte[]> store = context().getStateStore(STORE);
                store.put(record.key(), record.value());
            }
        }
    }
}
