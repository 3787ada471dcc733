import java.io.BufferedReader;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.StringJoiner;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Members of consumer groups that work in batches of a set length and write down each batch that they finish:
 * BOOTSTRAP LOG. Standard input has the commands that start and close members, and its end closes all:
 *
 * <pre>
 * start NAME GROUP TOPIC PROTOCOL BATCH_MS RECORD_MICROS INSTANCE [SETTING=VALUE ...]     INSTANCE "-": not static
 * close NAME
 * </pre>
 *
 * PROTOCOL is "consumer" or an assignor of the classic protocol. A batch takes BATCH_MS and RECORD_MICROS a record. Each
 * line of the log is a batch: NAME GROUP BEGIN_MS END_MS and PARTITION:FIRST:LAST:PRODUCED_MS for each partition in it.
 */
public final class BatchMembers {
    private static final Map<String, String> ASSIGNORS = Map.of(
            "range", "org.apache.kafka.clients.consumer.RangeAssignor",
            "cooperative-sticky", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor");

    private BatchMembers() {}

    public static void main(String[] words) throws IOException {
        var log = new FileOutputStream(words[1], true);
        var members = new HashMap<String, Member>();
        var orders = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        System.out.println("ready");
        for (var line = orders.readLine(); line != null; line = orders.readLine()) {
            var order = line.split(" ");
            if (order[0].equals("start")) {
                var member = new Member(words[0], log, order);
                members.put(order[1], member);
                member.start();
            } else {
                members.remove(order[1]).isClosing = true;
            }
        }
        members.values().forEach(member -> member.isClosing = true);
    }

    private static final class Member extends Thread {
        private final String bootstrap;
        private final FileOutputStream log;
        private final String[] order;
        volatile boolean isClosing;

        Member(String bootstrap, FileOutputStream log, String[] order) {
            this.bootstrap = bootstrap;
            this.log = log;
            this.order = order;
        }

        @Override
        public void run() {
            var bytes = new ByteArrayDeserializer();
            try (var consumer = new KafkaConsumer<>(settings(), bytes, bytes)) {
                consumer.subscribe(List.of(order[3]));
                while (!isClosing) {
                    var records = consumer.poll(Duration.ofMillis(100));
                    if (!records.isEmpty()) {
                        work(records);
                    }
                }
            } catch (InterruptedException | IOException cause) {
                throw new IllegalStateException(cause);
            }
        }

        private Map<String, Object> settings() {
            var settings = new HashMap<String, Object>();
            settings.put("bootstrap.servers", bootstrap);
            settings.put("group.id", order[2]);
            settings.put("auto.offset.reset", "earliest");
            if (order[4].equals("consumer")) {
                settings.put("group.protocol", "consumer");
            } else {
                settings.put("partition.assignment.strategy", ASSIGNORS.get(order[4]));
                settings.put("session.timeout.ms", "10000");
            }
            if (!order[7].equals("-")) {
                settings.put("group.instance.id", order[7]);
            }
            for (int place = 8; place < order.length; place++) {
                var setting = order[place].split("=", 2);
                settings.put(setting[0], setting[1]);
            }
            return settings;
        }

        private void work(ConsumerRecords<byte[], byte[]> records) throws InterruptedException, IOException {
            var begin = System.currentTimeMillis();
            Thread.sleep(Long.parseLong(order[5]) + records.count() * Long.parseLong(order[6]) / 1000);
            var line = new StringJoiner(" ", "", "\n");
            line.add(order[1]).add(order[2]).add(Long.toString(begin)).add(Long.toString(System.currentTimeMillis()));
            for (var partition : records.partitions()) {
                var part = records.records(partition);
                var first = part.get(0);
                var last = part.get(part.size() - 1);
                line.add(partition.partition() + ":" + first.offset() + ":" + last.offset() + ":" + first.timestamp());
            }
            log.write(line.toString().getBytes(StandardCharsets.UTF_8));
        }
    }
}
