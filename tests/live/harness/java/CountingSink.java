import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.sink.SinkConnector;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.sink.SinkTask;

/** A sink of Kafka Connect that drops what it gets, in as many tasks as its setting tasks.max allows. */
public final class CountingSink extends SinkConnector {
    @Override
    public void start(Map<String, String> settings) {}

    @Override
    public Class<? extends Task> taskClass() {
        return Dropping.class;
    }

    @Override
    public List<Map<String, String>> taskConfigs(int most) {
        return Collections.nCopies(most, Map.of());
    }

    @Override
    public void stop() {}

    @Override
    public ConfigDef config() {
        return new ConfigDef();
    }

    @Override
    public String version() {
        return "1";
    }

    /** One of its tasks. */
    public static final class Dropping extends SinkTask {
        @Override
        public void start(Map<String, String> settings) {}

        @Override
        public void put(Collection<SinkRecord> records) {}

        @Override
        public void stop() {}

        @Override
        public String version() {
            return "1";
        }
    }
}
