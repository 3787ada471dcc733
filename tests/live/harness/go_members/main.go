// Members of consumer groups with a client of Go, which take the commands of java/BatchMembers.java:
//
//	members franz-go|sarama BOOTSTRAP
//
// PROTOCOL, BATCH_MS and INSTANCE are not read: a member has its client's default assignor and works message by message.
// The settings are client.id, session.timeout.ms and auto.commit.interval.ms; others end the program.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kgo"
)

type order struct {
	bootstrap, group, topic string
	record                  time.Duration
	settings                map[string]string
}

func main() {
	run := map[string]func(context.Context, order) error{"franz-go": franz, "sarama": withSarama}[os.Args[1]]
	if run == nil {
		log.Fatalf("there is no client %q", os.Args[1])
	}
	closing := map[string]context.CancelFunc{}
	var working sync.WaitGroup
	fmt.Println("ready")
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if words[0] == "close" {
			closing[words[1]]()
			continue
		}
		ctx, cancel := context.WithCancel(context.Background())
		closing[words[1]] = cancel
		working.Add(1)
		go func() {
			defer working.Done()
			if err := run(ctx, ordered(words)); err != nil {
				log.Fatal(err)
			}
		}()
	}
	for _, cancel := range closing {
		cancel()
	}
	working.Wait()
}

func ordered(words []string) order {
	micros, err := strconv.Atoi(words[6])
	if err != nil {
		log.Fatal(err)
	}
	settings := map[string]string{}
	for _, word := range words[8:] {
		name, value, _ := strings.Cut(word, "=")
		settings[name] = value
	}
	return order{os.Args[2], words[2], words[3], time.Duration(micros) * time.Microsecond, settings}
}

func milliseconds(text string) time.Duration {
	count, err := strconv.Atoi(text)
	if err != nil {
		log.Fatal(err)
	}
	return time.Duration(count) * time.Millisecond
}

func franz(ctx context.Context, asked order) error {
	options := []kgo.Opt{
		kgo.SeedBrokers(asked.bootstrap),
		kgo.ConsumerGroup(asked.group),
		kgo.ConsumeTopics(asked.topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	}
	for name, value := range asked.settings {
		switch name {
		case "client.id":
			options = append(options, kgo.ClientID(value))
		case "session.timeout.ms":
			options = append(options, kgo.SessionTimeout(milliseconds(value)))
		case "auto.commit.interval.ms":
			options = append(options, kgo.AutoCommitInterval(milliseconds(value)))
		default:
			return fmt.Errorf("no setting %q", name)
		}
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	defer client.Close()
	for ctx.Err() == nil {
		client.PollRecords(ctx, 1).EachRecord(func(*kgo.Record) { time.Sleep(asked.record) })
	}
	return client.CommitUncommittedOffsets(context.Background())
}

// worker does one message at a time, whichever of its partitions it comes from.
type worker struct {
	record time.Duration
	turn   sync.Mutex
}

func (*worker) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (*worker) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (member *worker) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message, open := <-claim.Messages():
			if !open {
				return nil
			}
			member.turn.Lock()
			time.Sleep(member.record)
			member.turn.Unlock()
			session.MarkMessage(message, "")
		case <-session.Context().Done():
			return nil
		}
	}
}

func withSarama(ctx context.Context, asked order) error {
	settings := sarama.NewConfig()
	settings.Consumer.Offsets.Initial = sarama.OffsetOldest
	for name, value := range asked.settings {
		switch name {
		case "client.id":
			settings.ClientID = value
		case "session.timeout.ms":
			settings.Consumer.Group.Session.Timeout = milliseconds(value)
		case "auto.commit.interval.ms":
			settings.Consumer.Offsets.AutoCommit.Interval = milliseconds(value)
		default:
			return fmt.Errorf("no setting %q", name)
		}
	}
	group, err := sarama.NewConsumerGroup([]string{asked.bootstrap}, asked.group, settings)
	if err != nil {
		return err
	}
	member := &worker{record: asked.record}
	for ctx.Err() == nil {
		err := group.Consume(ctx, []string{asked.topic}, member)
		if err != nil && !errors.Is(err, sarama.ErrClosedConsumerGroup) {
			return err
		}
	}
	return group.Close()
}
