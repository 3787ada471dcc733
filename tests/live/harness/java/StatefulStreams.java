import java.io.FileOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/**
 * A Kafka Streams application of the classic protocol that keeps the last value of each key in a store:
 * BOOTSTRAP APPLICATION TOPIC FOLDER LOG NAME REPARTITIONED [SETTING=VALUE ...].
 *
 * <p>Records without a key are processed and kept nowhere. With REPARTITIONED above 0 a first sub-topology sends all records through a topic of so many partitions. FOLDER is
 * its state directory. Each line of the log is a record, as BatchMembers writes batches: NAME APPLICATION BEGIN_MS END_MS
 * PARTITION:OFFSET:OFFSET:PRODUCED_MS. SIGTERM closes it in order.
 */
public final class StatefulStreams {
    private static final String STORE = "last";

    private StatefulStreams() {}

    public static void main(String[] words) throws IOException {
        var log = new FileOutputStream(words[4], true);
        var settings = new Properties();
        settings.put("bootstrap.servers", words[0]);
        settings.put("application.id", words[1]);
        settings.put("state.dir", words[3]);
        settings.put("auto.offset.reset", "earliest");
        for (int place = 7; place < words.length; place++) {
            var setting = words[place].split("=", 2);
            settings.put(setting[0], setting[1]);
        }
        var bytes = Serdes.ByteArray();
        var plan = new StreamsBuilder();
        plan.addStateStore(Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore(STORE), Serdes.Bytes(), bytes));
        var records = plan.stream(words[2], Consumed.with(Serdes.Bytes(), bytes));
        var partitions = Integer.parseInt(words[6]);
        if (partitions > 0) {
            records = records.repartition(
                    Repartitioned.with(Serdes.Bytes(), bytes).withName("again").withNumberOfPartitions(partitions));
        }
        records.process(() -> new Keeper(words[5], words[1], log), STORE);
        var application = new KafkaStreams(plan.build(), settings);
        Runtime.getRuntime().addShutdownHook(new Thread(application::close));
        application.start();
    }

    private static final class Keeper
            extends ContextualProcessor<org.apache.kafka.common.utils.Bytes, byte[], Void, Void> {
        private final String name;
        private final String application;
        private final FileOutputStream log;

        Keeper(String name, String application, FileOutputStream log) {
            this.name = name;
            this.application = application;
            this.log = log;
        }

        @Override
        public void process(Record<org.apache.kafka.common.utils.Bytes, byte[]> record) {
            KeyValueStore<org.apache.kafka.common.utils.Bytes, byte[]> store = context().getStateStore(STORE);
            if (record.key() != null) {
                store.put(record.key(), record.value());
            }
            var from = context().recordMetadata().orElseThrow();
            var now = System.currentTimeMillis();
            var line = String.format(
                    "%s %s %d %d %d:%d:%d:%d%n",
                    name, application, now, now, from.partition(), from.offset(), from.offset(), record.timestamp());
            try {
                log.write(line.getBytes(StandardCharsets.UTF_8));
            } catch (IOException cause) {
                throw new UncheckedIOException(cause);
            }
        }
    }
}
