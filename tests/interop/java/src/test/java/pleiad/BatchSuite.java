package pleiad;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.models.CosmosBatch;
import com.azure.cosmos.models.CosmosBatchResponse;
import com.azure.cosmos.models.CosmosBulkOperationResponse;
import com.azure.cosmos.models.CosmosBulkOperations;
import com.azure.cosmos.models.CosmosItemIdentity;
import com.azure.cosmos.models.CosmosItemOperation;
import com.azure.cosmos.models.CosmosPatchItemRequestOptions;
import com.azure.cosmos.models.CosmosPatchOperations;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.ThroughputProperties;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Transactional batch, bulk, patch and read many; run once per scheme by its subclasses. */
abstract class BatchSuite extends InWorld {
    BatchSuite(World.Scheme scheme) {
        super(scheme);
    }

    private CosmosContainer make(int throughput) {
        return world.make(ThroughputProperties.createManualThroughput(throughput), "/pk");
    }

    private static ObjectNode item(String id, String key, int n) {
        return JSON.createObjectNode().put("id", id).put("pk", key).put("n", n);
    }

    private static List<Integer> codes(CosmosBatchResponse response) {
        return response.getResults().stream().map(result -> result.getStatusCode()).toList();
    }

    @Test
    void s114ABatchIsAtomic() {
        CosmosContainer container = make(400);
        PartitionKey key = new PartitionKey("a");
        container.createItem(item("old", "a", 1));
        CosmosBatch batch = CosmosBatch.createCosmosBatch(key);
        batch.createItemOperation(item("new", "a", 1));
        batch.replaceItemOperation("old", item("old", "a", 2));
        batch.patchItemOperation("old", CosmosPatchOperations.create().increment("/n", 5));
        batch.readItemOperation("old");
        batch.deleteItemOperation("new");
        CosmosBatchResponse done = container.executeCosmosBatch(batch);
        assertTrue(done.isSuccessStatusCode());
        assertEquals(List.of(201, 200, 200, 200, 204), codes(done));
        assertEquals(7, done.getResults().get(3).getItem(ObjectNode.class).get("n").asInt());

        CosmosBatch failing = CosmosBatch.createCosmosBatch(key);
        failing.deleteItemOperation("old");
        failing.readItemOperation("missing");
        CosmosBatchResponse failed = container.executeCosmosBatch(failing);
        assertFalse(failed.isSuccessStatusCode());
        assertEquals(List.of(424, 404), codes(failed));
        assertEquals(7, container.readItem("old", key, ObjectNode.class).getItem().get("n").asInt());
    }

    @Test
    void bulkOverManyKeys() {
        for (int throughput : new int[] {400, 30000}) {
            CosmosContainer container = make(throughput);
            container.createItem(item("7", "key 7", 0));
            List<CosmosItemOperation> operations = new ArrayList<>();
            for (int n = 0; n < 120; n++) {
                String key = "key " + n;
                operations.add(CosmosBulkOperations.getCreateItemOperation(item("" + n, key, n), new PartitionKey(key)));
            }
            int created = 0;
            int conflicts = 0;
            for (CosmosBulkOperationResponse<Object> response : container.executeBulkOperations(operations)) {
                created += response.getResponse().getStatusCode() == 201 ? 1 : 0;
                conflicts += response.getResponse().getStatusCode() == 409 ? 1 : 0;
            }
            assertEquals(119, created);
            assertEquals(1, conflicts);
        }
    }

    @Test
    void aPatchWithAndWithoutACondition() {
        CosmosContainer container = make(400);
        PartitionKey key = new PartitionKey("a");
        container.createItem(item("x", "a", 1));
        CosmosPatchOperations change =
            CosmosPatchOperations.create().add("/color", "red").increment("/n", 2).move("/color", "/paint");
        ObjectNode patched = container.patchItem("x", key, change, ObjectNode.class).getItem();
        assertEquals(3, patched.get("n").asInt());
        assertEquals("red", patched.get("paint").asText());
        CosmosPatchItemRequestOptions condition = new CosmosPatchItemRequestOptions();
        condition.setFilterPredicate("from c where c.n = 1");
        CosmosPatchOperations reset = CosmosPatchOperations.create().set("/n", 0);
        CosmosException error =
            assertThrows(CosmosException.class, () -> container.patchItem("x", key, reset, condition, ObjectNode.class));
        assertEquals(412, error.getStatusCode());
    }

    @Test
    void readManyOmitsMissingItems() {
        CosmosContainer container = make(30000);
        List<CosmosItemIdentity> identities = new ArrayList<>();
        for (int n = 0; n < 40; n++) {
            String key = "key " + n % 10;
            container.createItem(item("" + n, key, n));
            identities.add(new CosmosItemIdentity(new PartitionKey(key), "" + n));
        }
        identities.add(new CosmosItemIdentity(new PartitionKey("missing"), "0"));
        assertEquals(40, container.readMany(identities, ObjectNode.class).getResults().size());
    }
}
