package pleiad;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static pleiad.World.refused;

import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosItemIdentity;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.FeedResponse;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.SqlParameter;
import com.azure.cosmos.models.SqlQuerySpec;
import com.azure.cosmos.models.ThroughputProperties;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.IntConsumer;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Queries over five partitions and over one key, as the Java SDK executes them; run once per scheme by its subclasses. */
abstract class QuerySuite extends InWorld {
    private static final int RANGES = 5;
    private static final String ONE_KEY = "device 7";
    /** Expected results are computed from these items and never typed by hand. */
    private static final List<ObjectNode> READINGS = IntStream.range(0, 150).mapToObj(QuerySuite::reading).toList();

    private CosmosContainer container;

    QuerySuite(World.Scheme scheme) {
        super(scheme);
    }

    @BeforeAll
    void fill() {
        container = world.make(ThroughputProperties.createManualThroughput(6000 * RANGES), "/pk");
        READINGS.forEach(item -> container.createItem(item));
    }

    private static ObjectNode reading(int n) {
        return JSON.createObjectNode()
            .put("id", String.format("%04d", n))
            .put("pk", "device " + n % 23)
            .put("n", n)
            .put("metric", n * 37 % 101 / 4.0)
            .put("kind", List.of("humidity", "pressure", "temperature").get(n % 3))
            .put("floor", n % 5);
    }

    private static CosmosQueryRequestOptions everywhere() {
        return new CosmosQueryRequestOptions();
    }

    private static CosmosQueryRequestOptions oneKey() {
        return new CosmosQueryRequestOptions().setPartitionKey(new PartitionKey(ONE_KEY));
    }

    private List<JsonNode> ask(String text, CosmosQueryRequestOptions options) {
        return World.rows(container.queryItems(text, options, JsonNode.class));
    }

    private static List<String> texts(List<JsonNode> rows) {
        return rows.stream().map(JsonNode::asText).collect(Collectors.toList());
    }

    private static List<String> ids(Predicate<ObjectNode> expected) {
        return READINGS.stream().filter(expected).map(item -> item.get("id").asText()).collect(Collectors.toList());
    }

    private static boolean ofOneKey(ObjectNode item) {
        return item.get("pk").asText().equals(ONE_KEY);
    }

    @Test
    void theReadingsAreInFivePartitions() {
        assertEquals(RANGES, container.getFeedRanges().size());
        List<String> seen = new ArrayList<>();
        container.getFeedRanges().forEach(range -> seen.addAll(
            texts(ask("SELECT VALUE c.id FROM c", new CosmosQueryRequestOptions().setFeedRange(range)))));
        Collections.sort(seen);
        assertEquals(ids(item -> true), seen);
    }

    @Test
    void s101S102S104Filters() {
        Map<String, Predicate<ObjectNode>> filters = Map.of(
            "c.metric > 20", item -> item.get("metric").asDouble() > 20,
            "c.kind = 'humidity' AND c.n < 50", item -> item.get("kind").asText().equals("humidity") && item.get("n").asInt() < 50,
            "c.floor IN (1, 2) OR STARTSWITH(c.id, '01')",
            item -> List.of(1, 2).contains(item.get("floor").asInt()) || item.get("id").asText().startsWith("01"),
            "c.pk = 'device 7'", QuerySuite::ofOneKey,
            "c.n = -1", item -> false);
        filters.forEach((filter, expected) -> {
            String text = "SELECT VALUE c.id FROM c WHERE " + filter;
            assertEquals(ids(expected.and(QuerySuite::ofOneKey)), texts(ask(text, oneKey())), filter);
            List<String> got = texts(ask(text, everywhere()));
            Collections.sort(got);
            assertEquals(ids(expected), got, filter);
        });
    }

    @Test
    void s104Parameters() {
        SqlQuerySpec query = new SqlQuerySpec("SELECT VALUE c.id FROM c WHERE c.kind = @kind AND c.n > @least ORDER BY c.n",
            new SqlParameter("@kind", "pressure"), new SqlParameter("@least", 40));
        List<JsonNode> got = World.rows(container.queryItems(query, everywhere(), JsonNode.class));
        assertEquals(ids(item -> item.get("kind").asText().equals("pressure") && item.get("n").asInt() > 40), texts(got));
    }

    @Test
    void s105S106S107S108OrderByIsGlobalForEveryParallelism() {
        List<String> expected = ids(item -> true);
        for (int parallelism : List.of(0, 1, 10, -1)) {
            for (int buffered : List.of(1, 100, -1)) {
                CosmosQueryRequestOptions options =
                    everywhere().setMaxDegreeOfParallelism(parallelism).setMaxBufferedItemCount(buffered);
                assertEquals(expected, texts(ask("SELECT VALUE c.id FROM c ORDER BY c.n", options)));
            }
        }
        List<Double> metrics = READINGS.stream().map(item -> item.get("metric").asDouble()).sorted(Comparator.reverseOrder()).toList();
        List<JsonNode> got = ask("SELECT VALUE c.metric FROM c ORDER BY c.metric DESC", everywhere());
        assertEquals(metrics, got.stream().map(JsonNode::asDouble).toList());
    }

    @Test
    void s109TopOffsetAndLimitAreGlobal() {
        List<String> all = ids(item -> true);
        assertEquals(all.subList(0, 10), texts(ask("SELECT TOP 10 VALUE c.id FROM c ORDER BY c.n", everywhere())));
        assertEquals(all.subList(5, 17), texts(ask("SELECT VALUE c.id FROM c ORDER BY c.n OFFSET 5 LIMIT 12", everywhere())));
        assertEquals(7, ask("SELECT TOP 7 * FROM c", everywhere()).size());
    }

    @Test
    void rowsAreOrderedByVectorDistance() {
        String distance = "VectorDistance([c.n, 1], [0, 1], false, {'distanceFunction': 'euclidean'})";
        List<String> nearest = texts(ask("SELECT TOP 10 VALUE c.id FROM c ORDER BY " + distance, everywhere()));
        assertEquals(ids(item -> true).subList(0, 10), nearest);
    }

    @Test
    void aggregates() {
        double sum = READINGS.stream().mapToInt(item -> item.get("n").asInt()).sum();
        Map<String, Double> expected = Map.of("COUNT(1)", (double) READINGS.size(), "SUM(c.n)", sum, "AVG(c.n)", sum / READINGS.size(),
            "MIN(c.n)", 0.0, "MAX(c.n)", READINGS.size() - 1.0);
        expected.forEach((call, value) -> {
            assertEquals(value, ask("SELECT VALUE " + call + " FROM c", everywhere()).get(0).asDouble(), call);
            assertEquals(value, ask("SELECT " + call + " AS it FROM c", everywhere()).get(0).get("it").asDouble(), call);
        });
        long ofKey = READINGS.stream().filter(QuerySuite::ofOneKey).count();
        assertEquals(ofKey, ask("SELECT VALUE COUNT(1) FROM c", oneKey()).get(0).asLong());
    }

    @Test
    void groupByAndDistinct() {
        Map<String, Long> expected = READINGS.stream()
            .collect(Collectors.groupingBy(item -> item.get("kind").asText(), Collectors.counting()));
        Map<String, Long> got = new LinkedHashMap<>();
        ask("SELECT c.kind, COUNT(1) AS many FROM c GROUP BY c.kind", everywhere())
            .forEach(row -> got.put(row.get("kind").asText(), row.get("many").asLong()));
        assertEquals(expected, got);
        List<String> kinds = texts(ask("SELECT DISTINCT VALUE c.kind FROM c", everywhere()));
        Collections.sort(kinds);
        assertEquals(expected.keySet().stream().sorted().toList(), kinds);
    }

    @Test
    void s106AnotherClientResumesFromAToken() {
        for (String text : List.of("SELECT VALUE c.id FROM c", "SELECT VALUE c.id FROM c ORDER BY c.n",
                "SELECT VALUE c.id FROM c ORDER BY c.metric DESC", "SELECT VALUE c.id FROM c ORDER BY c.kind",
                "SELECT TOP 50 VALUE c.id FROM c ORDER BY c.floor", "SELECT TOP 30 VALUE c.id FROM c",
                "SELECT VALUE c.id FROM c OFFSET 4 LIMIT 60", "SELECT VALUE c.id FROM c ORDER BY c.n OFFSET 3 LIMIT 40")) {
            for (int size : List.of(7, 40)) {
                assertEquals(texts(ask(text, everywhere())), pageByPage(text, size), text + ", pages of " + size);
            }
        }
    }

    private List<String> pageByPage(String text, int size) {
        return pageByPage(container, text, size, page -> { });
    }

    /** Reads pages alternately through two clients, which get only the token of the page before. */
    private List<String> pageByPage(CosmosContainer container, String text, int size, IntConsumer afterPage) {
        List<String> rows = new ArrayList<>();
        try (CosmosClient other = World.builder(scheme).buildClient()) {
            CosmosContainer otherContainer = other.getDatabase(world.database.getId()).getContainer(container.getId());
            String token = null;
            for (int page = 0; page < 300; page++) {
                afterPage.accept(page);
                CosmosContainer reader = page % 2 == 0 ? container : otherContainer;
                Iterator<FeedResponse<JsonNode>> pages =
                    reader.queryItems(text, everywhere(), JsonNode.class).iterableByPage(token, size).iterator();
                FeedResponse<JsonNode> response = pages.next();
                rows.addAll(texts(response.getResults()));
                token = response.getContinuationToken();
                if (token == null) {
                    return rows;
                }
            }
        }
        throw new AssertionError("the pages do not end");
    }

    @Test
    void queryMetricsAndIndexMetrics() {
        CosmosQueryRequestOptions options = oneKey().setQueryMetricsEnabled(true).setIndexMetricsEnabled(true);
        FeedResponse<JsonNode> page =
            container.queryItems("SELECT * FROM c WHERE c.metric > 10", options, JsonNode.class).iterableByPage().iterator().next();
        assertTrue(page.getRequestCharge() > 0);
        assertNotNull(page.getCosmosDiagnostics());
        assertTrue(page.getCosmosDiagnostics().toString().contains("retrievedDocumentCount"), page.getCosmosDiagnostics().toString());
    }

    @Test
    void readMany() {
        List<ObjectNode> expected = READINGS.subList(10, 60);
        List<CosmosItemIdentity> identities = expected.stream()
            .map(item -> new CosmosItemIdentity(new PartitionKey(item.get("pk").asText()), item.get("id").asText()))
            .toList();
        List<String> got = container.readMany(identities, JsonNode.class).getResults().stream()
            .map(item -> item.get("id").asText()).sorted().toList();
        assertEquals(expected.stream().map(item -> item.get("id").asText()).toList(), got);
    }

    @Test
    void anInvalidQueryIs400() {
        Map.of("SELECT * FORM c", "SC1001", "SELECT NO_SUCH(c.n) FROM c", "SC2005", "SELECT TOP @n * FROM c", "SC2060")
            .forEach((text, code) -> {
                assertTrue(refused(400, () -> ask(text, oneKey())).getMessage().contains(code), text);
                assertTrue(refused(400, () -> ask(text, everywhere())).getMessage().contains(code), text);
            });
    }
}
