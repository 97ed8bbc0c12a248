package pleiad;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static pleiad.World.refused;
import static pleiad.World.unique;

import com.azure.cosmos.CosmosAsyncClient;
import com.azure.cosmos.CosmosAsyncContainer;
import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosDatabaseProperties;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.CosmosItemResponse;
import com.azure.cosmos.models.ExcludedPath;
import com.azure.cosmos.models.IndexingPolicy;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.PartitionKeyBuilder;
import com.azure.cosmos.models.SqlParameter;
import com.azure.cosmos.models.SqlQuerySpec;
import com.azure.cosmos.models.ThroughputProperties;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Base64;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Flux;

/** The Java SDK in gateway mode; run once per scheme by its subclasses. */
abstract class Suite extends InWorld {
    private static final PartitionKey A = new PartitionKey("a");

    Suite(World.Scheme scheme) {
        super(scheme);
    }

    /** An item: item("id", "x", "pk", "a", "n", 1). */
    private static ObjectNode item(Object... namesAndValues) {
        ObjectNode node = JSON.createObjectNode();
        for (int i = 0; i < namesAndValues.length; i += 2) {
            node.set((String) namesAndValues[i], JSON.valueToTree(namesAndValues[i + 1]));
        }
        return node;
    }

    private static JsonNode read(CosmosContainer container, PartitionKey key, String id) {
        return container.readItem(id, key, JsonNode.class).getItem();
    }

    private static ThroughputProperties manual(int throughput) {
        return ThroughputProperties.createManualThroughput(throughput);
    }

    private static CosmosItemRequestOptions ifMatch(String etag) {
        return new CosmosItemRequestOptions().setIfMatchETag(etag);
    }

    // The account and its databases

    @Test
    void aWrongKeyIs401() {
        String key = Base64.getEncoder().encodeToString("not the key of this account".getBytes());
        // The SDK reads the account while it builds the client, and wraps the error.
        RuntimeException failure = assertThrows(RuntimeException.class, () -> World.builder(scheme).key(key).buildClient());
        assertTrue(failure.getMessage().contains("401") || failure.getMessage().contains("Unauthorized"), failure.getMessage());
    }

    @Test
    void aDatabaseIsCreatedAndDeleted() {
        String name = unique("database ü");
        world.client.createDatabase(name);
        assertEquals(name, world.client.getDatabase(name).read().getProperties().getId());
        refused(409, () -> world.client.createDatabase(name));
        assertEquals(200, world.client.createDatabaseIfNotExists(name).getStatusCode());
        world.client.getDatabase(name).delete();
        refused(404, () -> world.client.getDatabase(name).read());
    }

    @Test
    void aDatabaseIsListedAndFoundById() {
        String name = world.database.getId();
        assertTrue(world.client.readAllDatabases().stream().anyMatch(one -> one.getId().equals(name)));
        SqlQuerySpec byId = new SqlQuerySpec("SELECT * FROM root r WHERE r.id=@id", new SqlParameter("@id", name));
        List<String> found = world.client.queryDatabases(byId, null).stream().map(CosmosDatabaseProperties::getId).toList();
        assertEquals(List.of(name), found);
    }

    // Containers

    @Test
    void s3TheContainerStoresItsPartitionKey() {
        for (String[] paths : new String[][] {{"/deviceId"}, {"/a", "/b"}, {"/a", "/b", "/c"}}) {
            assertEquals(List.of(paths), world.make(paths).read().getProperties().getPartitionKeyDefinition().getPaths());
        }
    }

    @Test
    void aContainerIsCreatedReplacedAndDeleted() {
        CosmosContainer container = world.make("/pk");
        CosmosContainerProperties properties = container.read().getProperties();
        refused(409, () -> world.database.createContainer(properties));
        IndexingPolicy policy = properties.getIndexingPolicy();
        policy.setExcludedPaths(List.of(new ExcludedPath("/big/*")));
        CosmosContainerProperties replaced = container.replace(properties.setIndexingPolicy(policy)).getProperties();
        assertTrue(replaced.getIndexingPolicy().getExcludedPaths().stream().anyMatch(path -> path.getPath().equals("/big/*")));
        assertTrue(world.database.readAllContainers().stream().anyMatch(one -> one.getId().equals(container.getId())));
        container.delete();
        refused(404, container::read);
    }

    @Test
    void s15ThePartitionKeyCannotBeChangedInPlace() {
        CosmosContainer container = world.make("/pk");
        CosmosContainerProperties properties = container.read().getProperties();
        refused(400, () -> container.replace(properties.setPartitionKeyDefinition(World.key("/other"))));
        assertEquals(List.of("/pk"), container.read().getProperties().getPartitionKeyDefinition().getPaths());
    }

    // Throughput and ranges

    @Test
    void s60s83ThroughputIsProvisionedAndReplaced() {
        CosmosContainer container = world.make(manual(400), "/pk");
        assertEquals(400, container.readThroughput().getProperties().getManualThroughput());
        container.replaceThroughput(manual(700));
        assertEquals(700, container.readThroughput().getProperties().getManualThroughput());
        refused(400, () -> world.make(manual(300), "/pk"));
    }

    @Test
    void autoscale() {
        CosmosContainer container = world.make(ThroughputProperties.createAutoscaledThroughput(5000), "/pk");
        assertEquals(5000, container.readThroughput().getProperties().getAutoscaleMaxThroughput());
    }

    @Test
    void s44s70ANewContainerHasOneRangePer6000() {
        int[][] expected = {{400, 1}, {6000, 1}, {11000, 2}, {20000, 4}, {30000, 5}};
        for (int[] one : expected) {
            assertEquals(one[1], world.make(manual(one[0]), "/deviceId").getFeedRanges().size(), one[0] + " RU/s");
        }
    }

    // Items

    @Test
    void s95s97s98s100CreateReadReplaceDeleteTheSampleDocument() {
        CosmosContainer container = world.make("/deviceId");
        PartitionKey key = new PartitionKey("XMS-0001");
        ObjectNode reading = item(
            "id", "XMS-001-FE24C", "deviceId", "XMS-0001", "metricType", "Temperature", "unit", "Fahrenheit",
            "metricValue", 105.00, "readingTime", "2016-01-20T10:30:00.000Z");
        CosmosItemResponse<ObjectNode> created = container.createItem(reading, key, null);
        assertEquals(201, created.getStatusCode());
        assertNotNull(created.getETag());
        JsonNode read = read(container, key, "XMS-001-FE24C");
        // Equal in value: the service writes 105.0 as 105.
        assertEquals(105.0, read.get("metricValue").asDouble());
        assertEquals(reading.get("readingTime").asText(), read.get("readingTime").asText());

        container.replaceItem(reading.deepCopy().put("metricValue", 104), "XMS-001-FE24C", key, null);
        assertEquals(104, read(container, key, "XMS-001-FE24C").get("metricValue").asInt());
        assertEquals(204, container.deleteItem("XMS-001-FE24C", key, null).getStatusCode());
        refused(404, () -> read(container, key, "XMS-001-FE24C"));
    }

    @Test
    void upsertCreatesThenReplaces() {
        CosmosContainer container = world.make("/pk");
        assertEquals(201, container.upsertItem(item("id", "x", "pk", "a", "n", 1)).getStatusCode());
        assertEquals(200, container.upsertItem(item("id", "x", "pk", "a", "n", 2)).getStatusCode());
        assertEquals(2, read(container, A, "x").get("n").asInt());
    }

    @Test
    void s12s13KeyAndIdAreTheIdentity() {
        CosmosContainer container = world.make("/pk");
        container.createItem(item("id", "0001", "pk", "Marketing"));
        container.createItem(item("id", "0001", "pk", "Sales"));
        refused(409, () -> container.createItem(item("id", "0001", "pk", "Sales")));
        assertEquals("Sales", read(container, new PartitionKey("Sales"), "0001").get("pk").asText());
        refused(404, () -> read(container, new PartitionKey("Other"), "0001"));
    }

    @Test
    void s95AKeyThatDoesNotMatchTheBodyIs400() {
        CosmosContainer container = world.make("/pk");
        assertEquals(1001, refused(400, () -> container.createItem(item("id", "x", "pk", "b"), A, null)).getSubStatusCode());
    }

    @Test
    void s10KeysOfEveryType() {
        CosmosContainer container = world.make("/pk");
        for (Object value : new Object[] {"", "7", "é 日本 😀", 7, -1.5, true, false}) {
            PartitionKey key = new PartitionKey(value);
            container.createItem(item("id", "x", "pk", value), key, null);
            assertEquals(JSON.valueToTree(value), read(container, key, "x").get("pk"));
        }
        ObjectNode none = item("id", "x", "n", 1);
        container.createItem(none, PartitionKey.NONE, null);
        assertEquals(1, read(container, PartitionKey.NONE, "x").get("n").asInt());
        PartitionKey nullKey = new PartitionKeyBuilder().addNullValue().build();
        container.createItem(item("id", "x", "pk", null), nullKey, null);
        assertTrue(read(container, nullKey, "x").get("pk").isNull());
    }

    @Test
    void hierarchicalKeys() {
        CosmosContainer container = world.make(manual(18000), "/tenant", "/user", "/session");
        for (int n = 0; n < 40; n++) {
            container.createItem(item("id", "x", "tenant", "tenant " + n % 7, "user", n, "session", "s", "n", n));
        }
        for (int n = 0; n < 40; n++) {
            PartitionKey key = new PartitionKeyBuilder().add("tenant " + n % 7).add(n).add("s").build();
            assertEquals(n, read(container, key, "x").get("n").asInt());
        }
    }

    @Test
    void ifMatchWithAnOldEtagIs412() {
        CosmosContainer container = world.make("/pk");
        String etag = container.createItem(item("id", "x", "pk", "a")).getETag();
        container.replaceItem(item("id", "x", "pk", "a", "n", 1), "x", A, ifMatch(etag));
        refused(412, () -> container.replaceItem(item("id", "x", "pk", "a", "n", 2), "x", A, ifMatch(etag)));
        refused(412, () -> container.deleteItem("x", A, ifMatch(etag)));
        assertEquals(1, read(container, A, "x").get("n").asInt());
    }

    @Test
    void ifNoneMatchWithTheCurrentEtagIs304() {
        CosmosContainer container = world.make("/pk");
        String etag = container.createItem(item("id", "x", "pk", "a")).getETag();
        CosmosItemRequestOptions changed = new CosmosItemRequestOptions().setIfNoneMatchETag(etag);
        CosmosItemResponse<JsonNode> response = container.readItem("x", A, changed, JsonNode.class);
        assertEquals(304, response.getStatusCode());
        assertNull(response.getItem());
    }

    @Test
    void aWriteWithoutContentHasNoBody() {
        CosmosContainer container = world.make("/pk");
        CosmosItemRequestOptions quiet = new CosmosItemRequestOptions().setContentResponseOnWriteEnabled(false);
        CosmosItemResponse<ObjectNode> response = container.createItem(item("id", "x", "pk", "a"), A, quiet);
        assertNull(response.getItem());
        assertEquals(response.getETag(), read(container, A, "x").get("_etag").asText());
    }

    @Test
    void idsInAnyScript() {
        CosmosContainer container = world.make("/pk");
        for (String id : List.of("a b", "é", "日本語", "😀", "!@$^&*()-~`'_[]{}|;:,.<>", "a=b&c=d")) {
            container.createItem(item("id", id, "pk", "a"));
            assertEquals(id, read(container, A, id).get("id").asText());
            container.deleteItem(id, A, null);
        }
    }

    @Test
    void itemsUpTo2Mb() {
        CosmosContainer container = world.make("/pk");
        int limit = 2 * 1024 * 1024;
        container.createItem(item("id", "x", "pk", "a", "pad", "x".repeat(limit - 1024)));
        assertEquals(limit - 1024, read(container, A, "x").get("pad").asText().length());
        refused(413, () -> container.upsertItem(item("id", "x", "pk", "a", "pad", "x".repeat(limit + 1024))));
    }

    @Test
    void s87s88Charges() {
        CosmosContainer container = world.make("/pk");
        // About 300 bytes are left for the server's own properties.
        double written = container.createItem(item("id", "x", "pk", "a", "pad", "x".repeat(724))).getRequestCharge();
        double read = container.readItem("x", A, JsonNode.class).getRequestCharge();
        assertEquals(1.0, read, 0.005);
        assertTrue(written > read);
    }

    @Test
    void aRecreatedContainerIsEmptyAndWorks() {
        CosmosContainer container = world.make("/pk");
        container.createItem(item("id", "x", "pk", "a"));
        String before = container.read().getProperties().getETag();
        try (CosmosClient other = World.builder(scheme).buildClient()) {
            other.getDatabase(world.database.getId()).getContainer(container.getId()).delete();
            other.getDatabase(world.database.getId())
                .createContainer(new CosmosContainerProperties(container.getId(), World.key("/pk")));
        }
        refused(404, () -> read(container, A, "x"));
        container.createItem(item("id", "x", "pk", "a"));
        assertEquals("x", read(container, A, "x").get("id").asText());
        assertNotEquals(before, container.read().getProperties().getETag());
    }

    @Test
    void aThousandConcurrentRequests() {
        CosmosContainer container = world.make(manual(18000), "/pk");
        try (CosmosAsyncClient client = World.builder(scheme).buildAsyncClient()) {
            CosmosAsyncContainer target = client.getDatabase(world.database.getId()).getContainer(container.getId());
            long created = Flux.fromStream(IntStream.range(0, 1000).boxed())
                .flatMap(n -> target.createItem(item("id", "" + n, "pk", n), new PartitionKey(n), null), 1000)
                .count().block();
            long found = Flux.fromStream(IntStream.range(0, 1000).boxed())
                .flatMap(n -> target.readItem("" + n, new PartitionKey(n), JsonNode.class), 1000)
                .count().block();
            assertEquals(1000, created);
            assertEquals(1000, found);
        }
    }
}
