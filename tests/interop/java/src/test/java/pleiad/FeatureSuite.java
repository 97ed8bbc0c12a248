package pleiad;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static pleiad.World.refused;
import static pleiad.World.unique;
import static pleiad.World.waitFor;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.ClientEncryptionIncludedPath;
import com.azure.cosmos.models.ClientEncryptionPolicy;
import com.azure.cosmos.models.ComputedProperty;
import com.azure.cosmos.models.ConflictResolutionMode;
import com.azure.cosmos.models.ConflictResolutionPolicy;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosGlobalSecondaryIndexBuildStatus;
import com.azure.cosmos.models.CosmosGlobalSecondaryIndexDefinition;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.IncludedPath;
import com.azure.cosmos.models.IndexingPolicy;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.UniqueKey;
import com.azure.cosmos.models.UniqueKeyPolicy;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Features of a container, while its partitions split; run once per scheme by its subclasses. */
abstract class FeatureSuite extends InWorld {
    private static final int TWO_PARTITIONS = 12000;

    FeatureSuite(World.Scheme scheme) {
        super(scheme);
    }

    private static CosmosContainerProperties definition() {
        return new CosmosContainerProperties(unique("c"), World.key("/pk"));
    }

    private static ObjectNode item(String id, String key) {
        return JSON.createObjectNode().put("id", id).put("pk", key);
    }

    private void split(CosmosContainer container) {
        Management.split(world.database.getId(), container.getId());
    }

    private static List<JsonNode> query(CosmosContainer container, String text) {
        return World.rows(container.queryItems(text, new CosmosQueryRequestOptions(), JsonNode.class));
    }

    @Test
    void itemsExpire() {
        CosmosContainer container = world.define(definition().setDefaultTimeToLiveInSeconds(3), TWO_PARTITIONS);
        for (int n = 0; n < 10; n++) {
            container.createItem(item("expires", "key " + n));
            container.createItem(item("stays", "key " + n).put("ttl", -1));
        }
        split(container);
        waitFor(() -> query(container, "SELECT c.id FROM c").size() == 10);
        assertTrue(query(container, "SELECT c.id FROM c").stream().allMatch(row -> row.get("id").asText().equals("stays")));
        refused(404, () -> container.readItem("expires", new PartitionKey("key 3"), ObjectNode.class));
        refused(400, () -> container.createItem(item("x", "a").put("ttl", 0)));
    }

    @Test
    void s12UniqueKeysHoldAfterSplits() {
        UniqueKeyPolicy policy = new UniqueKeyPolicy().setUniqueKeys(
            List.of(new UniqueKey(List.of("/mail")), new UniqueKey(List.of("/name/first", "/name/last"))));
        CosmosContainer people = world.define(definition().setUniqueKeyPolicy(policy), TWO_PARTITIONS);
        for (int n = 0; n < 10; n++) {
            people.createItem(item("1", "key " + n).put("mail", "x"));
        }
        for (int round = 0; round < 3; round++) {
            for (int n = 0; n < 10; n++) {
                ObjectNode duplicate = item("2", "key " + n).put("mail", "x");
                refused(409, () -> people.createItem(duplicate));
                refused(409, () -> people.upsertItem(duplicate));
            }
            split(people);
        }
        people.deleteItem("1", new PartitionKey("key 3"), null);
        people.createItem(item("2", "key 3").put("mail", "x"));
        assertEquals(2, people.read().getProperties().getUniqueKeyPolicy().getUniqueKeys().size());
    }

    @Test
    void computedPropertiesWorkAfterASplit() {
        IndexingPolicy indexing = new IndexingPolicy();
        indexing.setIncludedPaths(List.of(new IncludedPath("/*"), new IncludedPath("/low/?")));
        ComputedProperty low = new ComputedProperty("low", "SELECT VALUE LOWER(c.name) FROM c");
        CosmosContainerProperties properties = definition().setComputedProperties(List.of(low));
        CosmosContainer container = world.define(properties.setIndexingPolicy(indexing), TWO_PARTITIONS);
        for (int n = 0; n < 20; n++) {
            container.createItem(item("" + n, "key " + n % 7).put("name", "NAME" + n % 4));
        }
        for (int round = 0; round < 2; round++) {
            List<JsonNode> found = query(container, "SELECT c.low FROM c WHERE c.low >= 'name2' ORDER BY c.low DESC");
            assertEquals(10, found.size());
            assertEquals("name3", found.get(0).get("low").asText());
            List<JsonNode> groups = query(container, "SELECT c.low, COUNT(1) AS n FROM c GROUP BY c.low");
            assertTrue(groups.size() == 4 && groups.stream().allMatch(group -> group.get("n").asInt() == 5));
            assertFalse(query(container, "SELECT * FROM c").get(0).has("low"));
            split(container);
        }
        assertEquals(1, container.read().getProperties().getComputedProperties().size());
    }

    @Test
    void aConflictResolutionPolicyIsStored() {
        ConflictResolutionPolicy policy = ConflictResolutionPolicy.createLastWriterWinsPolicy("/version");
        CosmosContainer container = world.define(definition().setConflictResolutionPolicy(policy), TWO_PARTITIONS);
        ConflictResolutionPolicy read = container.read().getProperties().getConflictResolutionPolicy();
        assertEquals(ConflictResolutionMode.LAST_WRITER_WINS, read.getMode());
        assertEquals("/version", read.getConflictResolutionPath());
    }

    @Test
    void aClientEncryptionPolicyIsStoredAndCannotChange() {
        ClientEncryptionIncludedPath path = new ClientEncryptionIncludedPath()
            .setPath("/ssn")
            .setClientEncryptionKeyId("cek")
            .setEncryptionType("Deterministic")
            .setEncryptionAlgorithm("AEAD_AES_256_CBC_HMAC_SHA256");
        CosmosContainerProperties properties =
            definition().setClientEncryptionPolicy(new ClientEncryptionPolicy(List.of(path)));
        refused(400, () -> world.define(properties, TWO_PARTITIONS));
        Management.encryptionKey(world.database.getId(), "cek");
        CosmosContainer container = world.define(properties, TWO_PARTITIONS);
        CosmosContainerProperties read = container.read().getProperties();
        assertEquals("/ssn", read.getClientEncryptionPolicy().getIncludedPaths().get(0).getPath());
        refused(400, () -> container.replace(
            read.setClientEncryptionPolicy(new ClientEncryptionPolicy(List.of(path.setPath("/other"))))));
    }

    @Test
    void aGlobalSecondaryIndexIsFilledAndMaintainedAndRejectsWrites() {
        CosmosContainer source = world.define(definition(), TWO_PARTITIONS);
        String[] cities = {"Rome", "Oslo", "Lima"};
        IntStream.range(0, 12).forEach(n ->
            source.createItem(item("" + n, "c" + n % 5).put("city", cities[n % 3]).put("n", n)));
        CosmosContainerProperties properties = new CosmosContainerProperties(unique("i"), World.key("/city"));
        properties.setGlobalSecondaryIndexDefinition(
            new CosmosGlobalSecondaryIndexDefinition(source.getId(), "SELECT c.id, c.city, c.n FROM c"));
        world.database.createContainer(properties);
        CosmosContainer index = world.database.getContainer(properties.getId());
        waitFor(() -> inCity(index, "Rome").equals(List.of(0, 3, 6, 9)));

        split(source);
        source.upsertItem(item("0", "c0").put("city", "Lima").put("n", 0));
        source.deleteItem("3", new PartitionKey("c3"), null);
        waitFor(() -> inCity(index, "Rome").equals(List.of(6, 9)));
        waitFor(() -> inCity(index, "Lima").equals(List.of(0, 2, 5, 8, 11)));
        split(index);
        source.createItem(item("12", "new").put("city", "Oslo").put("n", 12));
        waitFor(() -> inCity(index, "Oslo").equals(List.of(1, 4, 7, 10, 12)));

        CosmosGlobalSecondaryIndexDefinition read = index.read().getProperties().getGlobalSecondaryIndexDefinition();
        assertEquals(CosmosGlobalSecondaryIndexBuildStatus.ACTIVE, read.getStatus());
        refused(403, () -> index.createItem(item("x", "x").put("city", "Rome")));
        index.delete();
    }

    private static List<Integer> inCity(CosmosContainer index, String city) {
        CosmosQueryRequestOptions one = new CosmosQueryRequestOptions().setPartitionKey(new PartitionKey(city));
        return index.queryItems("SELECT c.n FROM c ORDER BY c.n", one, JsonNode.class).stream()
            .map(row -> row.get("n").asInt())
            .toList();
    }
}
