package pleiad;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static pleiad.World.unique;
import static pleiad.World.waitFor;

import com.azure.cosmos.ChangeFeedProcessor;
import com.azure.cosmos.ChangeFeedProcessorBuilder;
import com.azure.cosmos.CosmosAsyncClient;
import com.azure.cosmos.CosmosAsyncDatabase;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.ChangeFeedOperationType;
import com.azure.cosmos.models.ChangeFeedPolicy;
import com.azure.cosmos.models.ChangeFeedProcessorItem;
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
import java.util.Collections;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** The change feed by the pull model and by the change feed processor; run once per scheme by its subclasses. */
abstract class ChangeFeedSuite extends InWorld {
    private static final List<Integer> REMAINING = List.of(0, 1, 2, 5, 6, 7, 8, 9, 33);

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

    /** The numbers of the changed items, and the continuation. */
    private record Changes(List<Integer> numbers, String continuation) {}

    private static Changes read(CosmosContainer container, CosmosChangeFeedRequestOptions options) {
        List<Integer> numbers = new ArrayList<>();
        String continuation = null;
        for (FeedResponse<JsonNode> page : container.queryChangeFeed(options, JsonNode.class).iterableByPage()) {
            page.getResults().forEach(item -> numbers.add(item.get("n").asInt()));
            continuation = page.getContinuationToken();
        }
        numbers.sort(null);
        return new Changes(numbers, continuation);
    }

    private static CosmosChangeFeedRequestOptions beginning(FeedRange range) {
        return CosmosChangeFeedRequestOptions.createForProcessingFromBeginning(range);
    }

    private static CosmosChangeFeedRequestOptions continuing(String continuation) {
        return CosmosChangeFeedRequestOptions.createForProcessingFromContinuation(continuation);
    }

    @Test
    void fromTheBeginningThenFromAContinuation() {
        for (int throughput : new int[] {400, 30000}) {
            CosmosContainer container = changed(throughput);
            Changes first = read(container, beginning(FeedRange.forFullRange()).setMaxItemCount(2));
            assertEquals(REMAINING, first.numbers);
            container.upsertItem(item("key 7", 77));
            assertEquals(List.of(77), read(container, continuing(first.continuation)).numbers);
        }
    }

    @Test
    void fromNowAndFromATime() {
        CosmosContainer container = changed(400);
        FeedRange all = FeedRange.forFullRange();
        Changes now = read(container, CosmosChangeFeedRequestOptions.createForProcessingFromNow(all));
        assertEquals(List.of(), now.numbers);
        container.createItem(item("later", 100));
        assertEquals(List.of(100), read(container, continuing(now.continuation)).numbers);

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
        assertEquals(REMAINING, all);
    }

    private CosmosContainer makeWithAllVersions() {
        CosmosContainerProperties properties = new CosmosContainerProperties(unique("c"), World.key("/pk"));
        properties.setChangeFeedPolicy(ChangeFeedPolicy.createAllVersionsAndDeletesPolicy(Duration.ofMinutes(10)));
        return world.define(properties, 12000);
    }

    /** All versions, with a split after the first page. */
    @Test
    void allVersionsAndDeletes() {
        CosmosContainer container = makeWithAllVersions();
        FeedRange all = FeedRange.forFullRange();
        String continuation = null;
        CosmosChangeFeedRequestOptions now = CosmosChangeFeedRequestOptions.createForProcessingFromNow(all);
        for (FeedResponse<JsonNode> page
            : container.queryChangeFeed(now.allVersionsAndDeletes(), JsonNode.class).iterableByPage()) {
            assertEquals(0, page.getResults().size());
            continuation = page.getContinuationToken();
        }
        for (int n = 0; n < 10; n++) {
            container.createItem(item("key " + n, n));
            container.upsertItem(item("key " + n, n + 100));
        }
        List<String> operations = new ArrayList<>();
        CosmosChangeFeedRequestOptions later = continuing(continuation).allVersionsAndDeletes().setMaxItemCount(3);
        boolean split = false;
        for (FeedResponse<JsonNode> page : container.queryChangeFeed(later, JsonNode.class).iterableByPage()) {
            page.getResults().forEach(change -> operations.add(change.get("metadata").get("operationType").asText()));
            if (!split) {
                split = true;
                Management.split(world.database.getId(), container.getId());
                container.deleteItem("key 3", new PartitionKey("key 3"), null);
            }
            continuation = page.getContinuationToken();
        }
        for (JsonNode change
            : container.queryChangeFeed(continuing(continuation).allVersionsAndDeletes(), JsonNode.class)) {
            operations.add(change.get("metadata").get("operationType").asText());
        }
        assertEquals(10, Collections.frequency(operations, "create"), operations.toString());
        assertEquals(10, Collections.frequency(operations, "replace"), operations.toString());
        assertEquals(1, Collections.frequency(operations, "delete"), operations.toString());
    }

    /** Each change once, with its images, in the order of its key, before and after a split. */
    @Test
    void aProcessorOfAllVersionsContinuesAfterASplit() {
        CosmosContainer source = makeWithAllVersions();
        CosmosContainer leases = world.make("/id");
        try (CosmosAsyncClient client = World.builder(scheme).buildAsyncClient()) {
            CosmosAsyncDatabase database = client.getDatabase(world.database.getId());
            Queue<ChangeFeedProcessorItem> seen = new ConcurrentLinkedQueue<>();
            Queue<ChangeFeedProcessorItem> warmUp = new ConcurrentLinkedQueue<>();
            ChangeFeedProcessor processor = builder(database, source, leases)
                .handleAllVersionsAndDeletesChanges((List<ChangeFeedProcessorItem> changes) ->
                    changes.forEach(change -> (number(change) < 0 ? warmUp : seen).add(change)))
                .options(options().setStartFromBeginning(false))
                .buildChangeFeedProcessor();
            processor.start().block();
            // The processor starts with changes after its first poll, and there is no way to know when that was.
            waitFor(() -> {
                IntStream.range(1, 20).forEach(n -> source.upsertItem(item("warm-up " + n, -n)));
                return warmUp.stream().map(ChangeFeedSuite::number).distinct().count() == 19;
            });
            change(source);
            waitFor(() -> seen.size() >= 30);
            Management.split(world.database.getId(), source.getId());
            change(source);
            waitFor(() -> seen.size() >= 60);
            processor.stop().block();
            assertEquals(60, seen.size(), "nothing twice");
            List<String> ofOneKey = seen.stream().filter(change -> number(change) % 10 == 3)
                .map(change -> change.getChangeFeedMetaData().getOperationType() + " " + number(change))
                .toList();
            List<String> once = List.of("CREATE 3", "REPLACE 103");
            assertEquals(Stream.concat(once.stream(), once.stream()).toList(), ofOneKey);
        }
    }

    /** Ten items are created, replaced and deleted. */
    private static void change(CosmosContainer source) {
        for (int n = 0; n < 10; n++) {
            String key = "key " + n;
            source.createItem(item(key, n));
            source.upsertItem(item(key, n + 100));
            source.deleteItem(key, new PartitionKey(key), null);
        }
    }

    /** The item's number; 0 for a delete, which has no image of the item. */
    private static int number(ChangeFeedProcessorItem change) {
        boolean isDelete = change.getChangeFeedMetaData().getOperationType() == ChangeFeedOperationType.DELETE;
        return isDelete ? 0 : change.getCurrent().get("n").asInt();
    }

    @Test
    void aProcessorGetsEveryChangeAndItsSuccessorOnlyNewOnes() {
        CosmosContainer source = changed(12000);
        CosmosContainer leases = world.make("/id");
        try (CosmosAsyncClient client = World.builder(scheme).buildAsyncClient()) {
            CosmosAsyncDatabase database = client.getDatabase(world.database.getId());
            Queue<Integer> first = new ConcurrentLinkedQueue<>();
            ChangeFeedProcessor processor = processor(database, source, leases, first);
            processor.start().block();
            waitFor(() -> first.size() >= REMAINING.size());
            source.createItem(item("while it runs", 100));
            waitFor(() -> first.contains(100));
            waitFor(() -> lag(processor) == 0);
            processor.stop().block();
            assertEquals(REMAINING.size() + 1, first.size(), "nothing twice: " + first);

            source.createItem(item("while it is stopped", 200));
            Queue<Integer> second = new ConcurrentLinkedQueue<>();
            ChangeFeedProcessor successor = processor(database, source, leases, second);
            successor.start().block();
            waitFor(() -> second.contains(200));
            successor.stop().block();
            assertEquals(List.of(200), List.copyOf(second));
        }
    }

    /** Its lease is divided: changes from before the split are not repeated, later changes are returned once. */
    @Test
    void aProcessorContinuesAfterASplit() {
        CosmosContainer source = changed(400);
        CosmosContainer leases = world.make("/id");
        try (CosmosAsyncClient client = World.builder(scheme).buildAsyncClient()) {
            CosmosAsyncDatabase database = client.getDatabase(world.database.getId());
            Queue<Integer> seen = new ConcurrentLinkedQueue<>();
            ChangeFeedProcessor processor = processor(database, source, leases, seen);
            processor.start().block();
            waitFor(() -> seen.size() >= REMAINING.size());
            Management.split(world.database.getId(), source.getId());
            for (int n = 100; n < 120; n++) {
                source.createItem(item("after the split " + n, n));
            }
            waitFor(() -> seen.size() >= REMAINING.size() + 20);
            waitFor(() -> processor.getCurrentState().block().size() == 2);
            processor.stop().block();
            assertEquals(REMAINING.size() + 20, seen.size(), "nothing twice: " + seen);
        }
    }

    /** The handler that gets metadata with each change, and only the latest version. */
    @Test
    void aProcessorOfLatestVersionsContinuesAfterASplit() {
        CosmosContainer source = changed(12000);
        CosmosContainer leases = world.make("/id");
        try (CosmosAsyncClient client = World.builder(scheme).buildAsyncClient()) {
            CosmosAsyncDatabase database = client.getDatabase(world.database.getId());
            Queue<Integer> seen = new ConcurrentLinkedQueue<>();
            ChangeFeedProcessor processor = builder(database, source, leases)
                .handleLatestVersionChanges((List<ChangeFeedProcessorItem> changes) ->
                    changes.forEach(change -> seen.add(change.getCurrent().get("n").asInt())))
                .options(options())
                .buildChangeFeedProcessor();
            processor.start().block();
            waitFor(() -> seen.size() >= REMAINING.size());
            Management.split(world.database.getId(), source.getId());
            for (int n = 100; n < 120; n++) {
                source.createItem(item("after the split " + n, n));
            }
            waitFor(() -> seen.size() >= REMAINING.size() + 20);
            processor.stop().block();
            assertEquals(REMAINING.size() + 20, seen.size(), "nothing twice: " + seen);
        }
    }

    private static int lag(ChangeFeedProcessor processor) {
        List<ChangeFeedProcessorState> states = processor.getCurrentState().block();
        assertTrue(!states.isEmpty(), "there are leases");
        return states.stream().mapToInt(ChangeFeedProcessorState::getEstimatedLag).sum();
    }

    private ChangeFeedProcessor processor(
        CosmosAsyncDatabase database, CosmosContainer source, CosmosContainer leases, Queue<Integer> seen) {
        return builder(database, source, leases)
            .handleChanges((List<JsonNode> items) -> items.forEach(item -> seen.add(item.get("n").asInt())))
            .options(options())
            .buildChangeFeedProcessor();
    }

    private static ChangeFeedProcessorBuilder builder(
        CosmosAsyncDatabase database, CosmosContainer source, CosmosContainer leases) {
        return new ChangeFeedProcessorBuilder()
            .hostName(unique("host"))
            .feedContainer(database.getContainer(source.getId()))
            .leaseContainer(database.getContainer(leases.getId()));
    }

    private static ChangeFeedProcessorOptions options() {
        return new ChangeFeedProcessorOptions()
            .setStartFromBeginning(true)
            .setLeasePrefix("suite")
            .setFeedPollDelay(Duration.ofMillis(100))
            .setLeaseAcquireInterval(Duration.ofMillis(500))
            .setLeaseRenewInterval(Duration.ofSeconds(1))
            .setLeaseExpirationInterval(Duration.ofSeconds(5));
    }
}
