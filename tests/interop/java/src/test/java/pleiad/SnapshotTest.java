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
 * Snapshots of the whole account, and copies of a database: one client goes on over restores, whatever it has cached. The
 * server is one of its own: a restore takes everybody's data back.
 */
@EnabledIfEnvironmentVariable(named = "PLEIAD_ENDPOINT_RESTORED", matches = ".+")
class SnapshotTest {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String ENDPOINT = System.getenv("PLEIAD_ENDPOINT_RESTORED");
    private static final List<Integer> TWENTY = IntStream.range(0, 20).boxed().toList();

    private static ObjectNode order(int n) {
        return JSON.createObjectNode().put("id", "" + n).put("pk", "" + n % 5).put("n", n);
    }

    /** The same in every way it can be asked. */
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
    void restoresAndCopiesGiveTheSameDataToTheSameClient() {
        String name = unique("java");
        String snapshot = unique("clean");
        String copied = unique("copy");
        // The scheme says what the builder begins with; the endpoint is another.
        try (CosmosClient client = World.builder(World.Scheme.HTTP).endpoint(ENDPOINT).buildClient()) {
            client.createDatabase(name);
            CosmosDatabase database = client.getDatabase(name);
            database.createContainer("orders", "/pk");
            CosmosContainer orders = database.getContainer("orders");
            TWENTY.forEach(n -> orders.createItem(order(n)));
            Management.ask(ENDPOINT, "PUT", "snapshots/" + snapshot, "");
            for (int round = 0; round < 6; round++) {
                orders.createItem(order(100));
                orders.deleteItem("2", new PartitionKey("2"), null);
                if (round % 2 == 1) {
                    Management.split(ENDPOINT, name, "orders");
                }
                Management.ask(ENDPOINT, "POST", "snapshots/" + snapshot + "/restore", "");
                assertEquals(TWENTY, everything(orders), "round " + round);
            }
            String done =
                Management.ask(ENDPOINT, "POST", "databases/" + name + "/copy?wait=true", "{\"to\":\"" + copied + "\"}");
            assertTrue(done.contains("\"done\""), done);
            assertEquals(TWENTY, everything(client.getDatabase(copied).getContainer("orders")));
            client.getDatabase(copied).delete();
            Management.ask(ENDPOINT, "DELETE", "snapshots/" + snapshot, "");
            database.delete();
        }
    }
}
