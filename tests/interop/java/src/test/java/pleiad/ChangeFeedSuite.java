package pleiad;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static pleiad.World.unique;

import com.azure.cosmos.ChangeFeedProcessor;
import com.azure.cosmos.ChangeFeedProcessorBuilder;
import com.azure.cosmos.CosmosAsyncClient;
import com.azure.cosmos.CosmosAsyncDatabase;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.ChangeFeedPolicy;
import com.azure.cosmos.models.ChangeFeedProcessorOptions;
import com.azure.cosmos.models.ChangeFeedProcessorState;
import com.azure.cosmos.models.CosmosChangeFeedRequestOptions;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.FeedRange;
import com.azure.cosmos.models.FeedResponse;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.ThroughputProperties;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.Test;

/** The change feed by pulling and by the change feed processor; run once per scheme by its subclasses. */
abstract class ChangeFeedSuite extends InWorld {
    private static final List<Integer> LEFT = List.of(0, 1, 2, 5, 6, 7, 8, 9, 33);

    ChangeFeedSuite(World.Scheme scheme) {
        super(scheme);
    }

    /** Ten items with ten keys; number 3 was replaced and number 4 deleted. */
    private CosmosContainer changed(int throughput) {
        CosmosContainer container = world.make(ThroughputProperties.createManualThroughput(throughput), "/pk");
        for (int n = 0; n < 10; n++) {
            container.createItem(item("key " + n, n));
        }
        container.upsertItem(item("key 3", 33));
        container.deleteItem("key 4", new PartitionKey("key 4"), null);
        return container;
    }

    private static ObjectNode item(String key, int n) {
        return JSON.createObjectNode().put("id", key).put("pk", key).put("n", n);
    }

    /** What is new, and where to go on. */
    private record Changes(List<Integer> numbers, String here) {}

    private static Changes read(CosmosContainer container, CosmosChangeFeedRequestOptions options) {
        List<Integer> numbers = new ArrayList<>();
        String here = null;
        for (FeedResponse<JsonNode> page : container.queryChangeFeed(options, JsonNode.class).iterableByPage()) {
            page.getResults().forEach(item -> numbers.add(item.get("n").asInt()));
            here = page.getContinuationToken();
        }
        numbers.sort(null);
        return new Changes(numbers, here);
    }

    private static CosmosChangeFeedRequestOptions beginning(FeedRange range) {
        return CosmosChangeFeedRequestOptions.createForProcessingFromBeginning(range);
    }

    private static CosmosChangeFeedRequestOptions continuing(String here) {
        return CosmosChangeFeedRequestOptions.createForProcessingFromContinuation(here);
    }

    @Test
    void fromTheBeginningThenFromAContinuation() {
        for (int throughput : new int[] {400, 30000}) {
            CosmosContainer container = changed(throughput);
            Changes first = read(container, beginning(FeedRange.forFullRange()).setMaxItemCount(2));
            assertEquals(LEFT, first.numbers);
            container.upsertItem(item("key 7", 77));
            assertEquals(List.of(77), read(container, continuing(first.here)).numbers);
        }
    }

    @Test
    void fromNowAndFromATime() {
        CosmosContainer container = changed(400);
        FeedRange all = FeedRange.forFullRange();
        Changes now = read(container, CosmosChangeFeedRequestOptions.createForProcessingFromNow(all));
        assertEquals(List.of(), now.numbers);
        container.createItem(item("later", 100));
        assertEquals(List.of(100), read(container, continuing(now.here)).numbers);

        Instant ago = Instant.now().minus(Duration.ofHours(1));
        Changes since = read(container, CosmosChangeFeedRequestOptions.createForProcessingFromPointInTime(ago, all));
        assertEquals(10, since.numbers.size());
    }

    @Test
    void ofOneKeyAndOfEveryFeedRange() {
        CosmosContainer container = changed(30000);
        FeedRange one = FeedRange.forLogicalPartition(new PartitionKey("key 3"));
        assertEquals(List.of(33), read(container, beginning(one)).numbers);

        List<Integer> all = new ArrayList<>();
        List<FeedRange> ranges = container.getFeedRanges();
        assertEquals(5, ranges.size());
        ranges.forEach(range -> all.addAll(read(container, beginning(range)).numbers));
        all.sort(null);
        assertEquals(LEFT, all);
    }

    @Test
    void allVersionsAndDeletes() {
        CosmosContainerProperties properties = new CosmosContainerProperties(unique("c"), World.key("/pk"));
        properties.setChangeFeedPolicy(ChangeFeedPolicy.createAllVersionsAndDeletesPolicy(Duration.ofMinutes(10)));
        world.database.createContainer(properties);
        CosmosContainer container = world.database.getContainer(properties.getId());
        FeedRange all = FeedRange.forFullRange();
        String here = null;
        CosmosChangeFeedRequestOptions now = CosmosChangeFeedRequestOptions.createForProcessingFromNow(all);
        for (FeedResponse<JsonNode> page
            : container.queryChangeFeed(now.allVersionsAndDeletes(), JsonNode.class).iterableByPage()) {
            assertEquals(0, page.getResults().size());
            here = page.getContinuationToken();
        }
        container.createItem(item("x", 1));
        container.upsertItem(item("x", 2));
        container.deleteItem("x", new PartitionKey("x"), null);
        List<String> operations = new ArrayList<>();
        CosmosChangeFeedRequestOptions later = continuing(here).allVersionsAndDeletes();
        for (JsonNode change : container.queryChangeFeed(later, JsonNode.class)) {
            operations.add(change.get("metadata").get("operationType").asText());
        }
        assertEquals(List.of("create", "replace", "delete"), operations);
    }

    @Test
    void aProcessorSeesEveryChangeAndItsSuccessorOnlyWhatIsNew() {
        CosmosContainer source = changed(12000);
        CosmosContainer leases = world.make("/id");
        try (CosmosAsyncClient client = World.builder(scheme).buildAsyncClient()) {
            CosmosAsyncDatabase database = client.getDatabase(world.database.getId());
            Queue<Integer> first = new ConcurrentLinkedQueue<>();
            ChangeFeedProcessor processor = processor(database, source, leases, first);
            processor.start().block();
            waitFor(() -> first.size() >= LEFT.size());
            source.createItem(item("while it runs", 100));
            waitFor(() -> first.contains(100));
            waitFor(() -> lag(processor) == 0);
            processor.stop().block();
            assertEquals(LEFT.size() + 1, first.size(), "nothing twice: " + first);

            source.createItem(item("while it is away", 200));
            Queue<Integer> second = new ConcurrentLinkedQueue<>();
            ChangeFeedProcessor successor = processor(database, source, leases, second);
            successor.start().block();
            waitFor(() -> second.contains(200));
            successor.stop().block();
            assertEquals(List.of(200), List.copyOf(second));
        }
    }

    /** Its lease is divided: what came before the split is not told again, what comes after is told once. */
    @Test
    void aProcessorGoesOnBehindASplit() {
        CosmosContainer source = changed(400);
        CosmosContainer leases = world.make("/id");
        try (CosmosAsyncClient client = World.builder(scheme).buildAsyncClient()) {
            CosmosAsyncDatabase database = client.getDatabase(world.database.getId());
            Queue<Integer> seen = new ConcurrentLinkedQueue<>();
            ChangeFeedProcessor processor = processor(database, source, leases, seen);
            processor.start().block();
            waitFor(() -> seen.size() >= LEFT.size());
            Management.split(world.database.getId(), source.getId());
            for (int n = 100; n < 120; n++) {
                source.createItem(item("behind the split " + n, n));
            }
            waitFor(() -> seen.size() >= LEFT.size() + 20);
            waitFor(() -> processor.getCurrentState().block().size() == 2);
            processor.stop().block();
            assertEquals(LEFT.size() + 20, seen.size(), "nothing twice: " + seen);
        }
    }

    private static int lag(ChangeFeedProcessor processor) {
        List<ChangeFeedProcessorState> states = processor.getCurrentState().block();
        assertTrue(!states.isEmpty(), "there are leases");
        return states.stream().mapToInt(ChangeFeedProcessorState::getEstimatedLag).sum();
    }

    private ChangeFeedProcessor processor(
        CosmosAsyncDatabase database, CosmosContainer source, CosmosContainer leases, Queue<Integer> seen) {
        ChangeFeedProcessorOptions options = new ChangeFeedProcessorOptions()
            .setStartFromBeginning(true)
            .setLeasePrefix("suite")
            .setFeedPollDelay(Duration.ofMillis(100))
            .setLeaseAcquireInterval(Duration.ofMillis(500))
            .setLeaseRenewInterval(Duration.ofSeconds(1))
            .setLeaseExpirationInterval(Duration.ofSeconds(5));
        return new ChangeFeedProcessorBuilder()
            .hostName(unique("host"))
            .feedContainer(database.getContainer(source.getId()))
            .leaseContainer(database.getContainer(leases.getId()))
            .handleChanges((List<JsonNode> items) -> items.forEach(item -> seen.add(item.get("n").asInt())))
            .options(options)
            .buildChangeFeedProcessor();
    }

    private static void waitFor(BooleanSupplier holds) {
        Instant end = Instant.now().plus(Duration.ofSeconds(60));
        while (!holds.getAsBoolean()) {
            assertTrue(Instant.now().isBefore(end), "it did not happen within a minute");
            try {
                Thread.sleep(50);
            } catch (InterruptedException interrupted) {
                throw new IllegalStateException(interrupted);
            }
        }
    }
}
