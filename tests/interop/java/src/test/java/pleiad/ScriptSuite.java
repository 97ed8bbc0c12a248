package pleiad;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static pleiad.World.refused;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.CosmosStoredProcedureProperties;
import com.azure.cosmos.models.CosmosStoredProcedureRequestOptions;
import com.azure.cosmos.models.CosmosStoredProcedureResponse;
import com.azure.cosmos.models.CosmosTriggerProperties;
import com.azure.cosmos.models.CosmosUserDefinedFunctionProperties;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.TriggerOperation;
import com.azure.cosmos.models.TriggerType;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Stored procedures, triggers and user-defined functions; the scripts are in PLEIAD_SCRIPTS. */
abstract class ScriptSuite extends InWorld {
    ScriptSuite(World.Scheme scheme) {
        super(scheme);
    }

    private static String source(String name) throws IOException {
        return Files.readString(Path.of(System.getenv("PLEIAD_SCRIPTS"), name + ".js"));
    }

    private static ObjectNode item(String id, String key) {
        return JSON.createObjectNode().put("id", id).put("pk", key);
    }

    private static void store(CosmosContainer container, String name, String body) {
        container.getScripts().createStoredProcedure(new CosmosStoredProcedureProperties(name, body));
    }

    private static CosmosStoredProcedureResponse run(CosmosContainer container, String name, String key, Object... arguments) {
        CosmosStoredProcedureRequestOptions options = new CosmosStoredProcedureRequestOptions();
        options.setPartitionKey(new PartitionKey(key)).setScriptLoggingEnabled(true);
        return container.getScripts().getStoredProcedure(name).execute(List.of(arguments), options);
    }

    @Test
    void s114S116AProcedureIsAtomicWithinOneKey() {
        CosmosContainer container = world.make("/pk");
        store(container, "pair", "function (key) { console.log('for ' + key);"
            + "__.createDocument(__.getSelfLink(), { id: '1', pk: 'a' });"
            + "__.createDocument(__.getSelfLink(), { id: '2', pk: key }); __.response.setBody({ done: true }) }");
        refused(400, () -> run(container, "pair", "a", "b"));
        refused(404, () -> container.readItem("1", new PartitionKey("a"), JsonNode.class));
        CosmosStoredProcedureResponse done = run(container, "pair", "a", "a");
        assertEquals("{\"done\":true}", done.getResponseAsString());
        assertEquals("for a", done.getScriptLog());
        assertTrue(done.getRequestCharge() > 10);
        container.readItem("2", new PartitionKey("a"), JsonNode.class);
    }

    @Test
    void bulkImportAndDeleteResume() throws IOException {
        CosmosContainer container = world.make("/pk");
        store(container, "bulkImport", source("bulkImport"));
        store(container, "bulkDelete", source("bulkDelete"));
        List<ObjectNode> items = new ArrayList<>();
        IntStream.range(0, 200).forEach(n -> items.add(item(String.valueOf(n), "a").put("n", n)));
        int imported = 0;
        while (imported < items.size()) {
            List<ObjectNode> rest = items.subList(imported, items.size());
            imported += Integer.parseInt(run(container, "bulkImport", "a", rest).getResponseAsString());
        }
        int deleted = 0;
        JsonNode result;
        do {
            String query = "SELECT * FROM c WHERE c.n < 150";
            result = JSON.readTree(run(container, "bulkDelete", "a", query).getResponseAsString());
            deleted += result.get("deleted").asInt();
        } while (result.get("continuation").asBoolean());
        assertEquals(150, deleted);
    }

    @Test
    void s118TriggersRunInTheTransactionOfTheWrite() throws IOException {
        CosmosContainer container = world.make("/pk");
        CosmosTriggerProperties check = new CosmosTriggerProperties("validateItem", source("validateItem"));
        container.getScripts().createTrigger(
            check.setTriggerType(TriggerType.PRE).setTriggerOperation(TriggerOperation.ALL));
        CosmosTriggerProperties count = new CosmosTriggerProperties("updateMetadata", source("updateMetadata"));
        container.getScripts().createTrigger(
            count.setTriggerType(TriggerType.POST).setTriggerOperation(TriggerOperation.CREATE));
        assertEquals(2, container.getScripts().readAllTriggers().stream().count());
        CosmosItemRequestOptions both = new CosmosItemRequestOptions()
            .setPreTriggerInclude(List.of("validateItem")).setPostTriggerInclude(List.of("updateMetadata"));
        PartitionKey key = new PartitionKey("a");
        refused(400, () -> container.createItem(item("1", "a").put("name", "n"), key, both));
        container.createItem(item("_metadata", "a").put("createdDocuments", 0).put("createdNames", ""));
        assertTrue(container.createItem(item("1", "a").put("name", "n"), key, both).getItem().has("timestamp"));
        refused(400, () -> container.createItem(item("2", "a"), key, both));
        JsonNode metadata = container.readItem("_metadata", key, JsonNode.class).getItem();
        assertEquals(" 1", metadata.get("createdNames").asText());
    }

    @Test
    void functionsInQueries() throws IOException {
        CosmosContainer container = world.make("/pk");
        container.getScripts().createUserDefinedFunction(new CosmosUserDefinedFunctionProperties("tax", source("tax")));
        for (int income : new int[] {500, 5000, 50000}) {
            container.createItem(item(String.valueOf(income), String.valueOf(income)).put("income", income));
        }
        String query = "SELECT VALUE udf.tax(c.income) FROM c ORDER BY c.income";
        List<Integer> taxes =
            World.rows(container.queryItems(query, new CosmosQueryRequestOptions(), Integer.class));
        assertEquals(List.of(50, 1000, 20000), taxes);
    }
}
