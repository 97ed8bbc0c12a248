package pleiad;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static pleiad.World.unique;

import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosDatabase;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.PartitionKey;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;

/**
 * Snapshots of the whole account, and copies of a database: a client works across restores, whatever it has cached. This
 * test uses a separate server: a restore replaces all data of the account.
 */
@EnabledIfEnvironmentVariable(named = "PLEIAD_ENDPOINT_RESTORED", matches = ".+")
class SnapshotTest {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String ENDPOINT = System.getenv("PLEIAD_ENDPOINT_RESTORED");
    private static final List<Integer> TWENTY = IntStream.range(0, 20).boxed().toList();

    private static ObjectNode order(int n) {
        return JSON.createObjectNode().put("id", "" + n).put("pk", "" + n % 5).put("n", n);
    }

    /** Reads the items by query and by point reads; both must agree. */
    private static List<Integer> everything(CosmosContainer orders) {
        List<Integer> ordered =
            World.rows(orders.queryItems("SELECT c.n FROM c ORDER BY c.n", new CosmosQueryRequestOptions(), JsonNode.class)).stream()
                .map(row -> row.get("n").asInt())
                .toList();
        for (int n : ordered) {
            PartitionKey key = new PartitionKey("" + n % 5);
            assertEquals(n, orders.readItem("" + n, key, ObjectNode.class).getItem().get("n").asInt());
        }
        return ordered;
    }

    @Test
    void aClientSeesTheSameDataAfterRestoresAndInCopies() {
        String name = unique("java");
        String snapshot = unique("clean");
        String copied = unique("copy");
        // The builder starts with the endpoint of the scheme, which is then replaced.
        try (CosmosClient client = World.builder(World.Scheme.HTTP).endpoint(ENDPOINT).buildClient()) {
            client.createDatabase(name);
            CosmosDatabase database = client.getDatabase(name);
            database.createContainer("orders", "/pk");
            CosmosContainer orders = database.getContainer("orders");
            TWENTY.forEach(n -> orders.createItem(order(n)));
            Management.call(ENDPOINT, "PUT", "snapshots/" + snapshot, "");
            for (int round = 0; round < 6; round++) {
                orders.createItem(order(100));
                orders.deleteItem("2", new PartitionKey("2"), null);
                if (round % 2 == 1) {
                    Management.split(ENDPOINT, name, "orders");
                }
                Management.call(ENDPOINT, "POST", "snapshots/" + snapshot + "/restore", "");
                assertEquals(TWENTY, everything(orders), "round " + round);
            }
            String done =
                Management.call(ENDPOINT, "POST", "databases/" + name + "/copy?wait=true", "{\"to\":\"" + copied + "\"}");
            assertTrue(done.contains("\"done\""), done);
            assertEquals(TWENTY, everything(client.getDatabase(copied).getContainer("orders")));
            client.getDatabase(copied).delete();
            Management.call(ENDPOINT, "DELETE", "snapshots/" + snapshot, "");
            database.delete();
        }
    }
}
