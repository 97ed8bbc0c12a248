package pleiad;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static pleiad.World.refused;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosFullTextIndex;
import com.azure.cosmos.models.CosmosFullTextPath;
import com.azure.cosmos.models.CosmosFullTextPolicy;
import com.azure.cosmos.models.CosmosFullTextScoreScope;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.CosmosVectorDataType;
import com.azure.cosmos.models.CosmosVectorDistanceFunction;
import com.azure.cosmos.models.CosmosVectorEmbedding;
import com.azure.cosmos.models.CosmosVectorEmbeddingPolicy;
import com.azure.cosmos.models.CosmosVectorIndexSpec;
import com.azure.cosmos.models.ExcludedPath;
import com.azure.cosmos.models.IncludedPath;
import com.azure.cosmos.models.IndexingPolicy;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.SqlParameter;
import com.azure.cosmos.models.SqlQuerySpec;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.BiFunction;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/**
 * Vector, full-text and hybrid search over several partitions and after a split; run once per scheme by its subclasses.
 *
 * <p>This SDK itself merges vectors, collects statistics of texts and fuses scores. The tests compute the expected results
 * from the published formulas: BM25 (k1 1.2, b 0.75) and RRF (60).
 */
abstract class SearchSuite extends InWorld {
    /** No stop words and no two forms of one word: stemming changes nothing. */
    private static final String[] WORDS = {"apple", "brick", "cloud", "drum", "elbow", "flint", "grape", "hammock"};

    private static final int[] TO = {60, 12};

    /** One item of the container, with its words as lists. */
    private record Doc(String id, String key, int n, List<String> text, List<String> title, int[] v) {}

    private static final List<Doc> DOCS = IntStream.rangeClosed(1, 120).mapToObj(SearchSuite::doc).toList();

    private CosmosContainer container;

    SearchSuite(World.Scheme scheme) {
        super(scheme);
    }

    /** Documents have different lengths; each word is rarer than the one before it. */
    private static Doc doc(int n) {
        List<String> words = new ArrayList<>();
        for (int at = 0; at < WORDS.length; at++) {
            words.addAll(Collections.nCopies(n % (at + 2) == 0 ? n / (at + 1) % 3 : 0, WORDS[at]));
        }
        List<String> text = new ArrayList<>(words);
        text.addAll(Collections.nCopies(n * 7 % 11, "filler"));
        List<String> title = words.subList(0, Math.min(3, words.size()));
        return new Doc(String.format("%03d", n), "key " + n % 7, n, text, title, new int[] {n, n * n % 31});
    }

    private static ObjectNode item(Doc doc) {
        ObjectNode item = JSON.createObjectNode().put("id", doc.id).put("pk", doc.key).put("n", doc.n);
        item.put("text", String.join(" ", doc.text)).put("title", String.join(" ", doc.title));
        for (String name : List.of("near", "alike")) {
            item.putArray(name).add(doc.v[0]).add(doc.v[1]);
        }
        return item;
    }

    @BeforeAll
    void fill() {
        container = filled(30000);
    }

    private CosmosContainer filled(int throughput) {
        CosmosContainerProperties properties = new CosmosContainerProperties(World.unique("c"), World.key("/pk"));
        CosmosVectorEmbeddingPolicy embeddings = new CosmosVectorEmbeddingPolicy();
        embeddings.setCosmosVectorEmbeddings(List.of(
            embedding("/near", CosmosVectorDistanceFunction.EUCLIDEAN),
            embedding("/alike", CosmosVectorDistanceFunction.COSINE)));
        properties.setVectorEmbeddingPolicy(embeddings);
        List<CosmosFullTextPath> paths = List.of("/text", "/title").stream()
            .map(path -> new CosmosFullTextPath().setPath(path).setLanguage("en-US"))
            .toList();
        properties.setFullTextPolicy(new CosmosFullTextPolicy().setDefaultLanguage("en-US").setPaths(paths));
        IndexingPolicy indexing = new IndexingPolicy();
        indexing.setIncludedPaths(List.of(new IncludedPath("/*")));
        indexing.setExcludedPaths(List.of(new ExcludedPath("/near/*"), new ExcludedPath("/alike/*")));
        indexing.setVectorIndexes(List.of(
            new CosmosVectorIndexSpec().setPath("/near").setType("flat"),
            new CosmosVectorIndexSpec().setPath("/alike").setType("diskANN")));
        indexing.setCosmosFullTextIndexes(
            List.of(new CosmosFullTextIndex().setPath("/text"), new CosmosFullTextIndex().setPath("/title")));
        properties.setIndexingPolicy(indexing);
        CosmosContainer created = world.define(properties, throughput);
        DOCS.forEach(doc -> created.createItem(item(doc)));
        return created;
    }

    private static CosmosVectorEmbedding embedding(String path, CosmosVectorDistanceFunction metric) {
        return new CosmosVectorEmbedding()
            .setPath(path)
            .setDataType(CosmosVectorDataType.FLOAT32)
            .setEmbeddingDimensions(2)
            .setDistanceFunction(metric);
    }

    // ---- vectors ----------------------------------------------------------------------------------------

    private static double euclidean(int[] a, int[] b) {
        return Math.hypot(a[0] - b[0], a[1] - b[1]);
    }

    private static double cosine(int[] a, int[] b) {
        return (a[0] * b[0] + a[1] * b[1]) / (Math.hypot(a[0], a[1]) * Math.hypot(b[0], b[1]));
    }

    private static List<Double> expected(BiFunction<int[], int[], Double> metric, boolean more, Predicate<Doc> predicate) {
        Comparator<Double> order = more ? Comparator.reverseOrder() : Comparator.naturalOrder();
        return DOCS.stream().filter(predicate).map(doc -> metric.apply(doc.v, TO)).sorted(order).toList();
    }

    private static List<Double> distances(CosmosContainer from, String path, String tail, CosmosQueryRequestOptions options) {
        String distance = "VectorDistance(c." + path + ", @v)";
        String text = "SELECT TOP 10 c.id, " + distance + " AS d FROM c " + tail + " ORDER BY " + distance;
        SqlQuerySpec query = new SqlQuerySpec(text, new SqlParameter("@v", TO));
        return World.rows(from.queryItems(query, options, JsonNode.class)).stream().map(row -> row.get("d").asDouble()).toList();
    }

    private static void close(List<Double> expected, List<Double> got) {
        assertEquals(expected.size(), got.size());
        for (int at = 0; at < got.size(); at++) {
            assertEquals(expected.get(at), got.get(at), 1e-6);
        }
    }

    private static void checkNearest(CosmosContainer from) {
        CosmosQueryRequestOptions all = new CosmosQueryRequestOptions();
        close(expected(SearchSuite::euclidean, false, doc -> true).subList(0, 10), distances(from, "near", "", all));
        close(expected(SearchSuite::cosine, true, doc -> true).subList(0, 10), distances(from, "alike", "", all));
    }

    @Test
    void policiesAreStored() {
        CosmosContainerProperties read = container.read().getProperties();
        List<CosmosVectorEmbedding> embeddings = read.getVectorEmbeddingPolicy().getVectorEmbeddings();
        assertEquals(List.of("/near", "/alike"), embeddings.stream().map(CosmosVectorEmbedding::getPath).toList());
        assertEquals(CosmosVectorDistanceFunction.COSINE, embeddings.get(1).getDistanceFunction());
        List<CosmosVectorIndexSpec> indexes = read.getIndexingPolicy().getVectorIndexes();
        assertEquals(List.of("flat", "diskANN"), indexes.stream().map(CosmosVectorIndexSpec::getType).toList());
        assertEquals(2, read.getFullTextPolicy().getPaths().size());
        assertEquals(2, read.getIndexingPolicy().getCosmosFullTextIndexes().size());
    }

    @Test
    void rowsAreOrderedByDistanceOverAllPartitions() {
        assertEquals(5, container.getFeedRanges().size());
        checkNearest(container);
        List<Double> some = distances(container, "near", "WHERE c.n > 100", new CosmosQueryRequestOptions());
        close(expected(SearchSuite::euclidean, false, doc -> doc.n > 100).subList(0, 10), some);
    }

    @Test
    void rowsAreOrderedByDistanceWithinOneKey() {
        CosmosQueryRequestOptions one = new CosmosQueryRequestOptions().setPartitionKey(new PartitionKey("key 3"));
        List<Double> expected = expected(SearchSuite::euclidean, false, doc -> doc.key.equals("key 3"));
        close(expected.subList(0, 10), distances(container, "near", "", one));
    }

    @Test
    void aSortDirectionIs400() {
        String text = "SELECT TOP 1 c.id FROM c ORDER BY VectorDistance(c.near, [1, 2]) DESC";
        refused(400, () -> rows(container, text, new CosmosQueryRequestOptions()));
    }

    // ---- texts ------------------------------------------------------------------------------------------

    private static List<String> rows(CosmosContainer from, String text, CosmosQueryRequestOptions options) {
        return World.rows(from.queryItems(text, options, JsonNode.class)).stream().map(row -> row.get("id").asText()).toList();
    }

    private static List<String> words(Doc doc, String path) {
        return path.equals("text") ? doc.text : doc.title;
    }

    /** The score of each document in {@code of}, by the statistics of {@code statistics}. */
    private static Map<String, Double> bm25(String path, List<Doc> of, List<Doc> statistics, String... terms) {
        double average = statistics.stream().mapToInt(doc -> words(doc, path).size()).average().orElseThrow();
        Map<String, Double> scores = new LinkedHashMap<>();
        for (Doc doc : of) {
            double score = 0;
            for (String term : terms) {
                long hits = statistics.stream().filter(one -> words(one, path).contains(term)).count();
                double rarity = Math.log(1 + (statistics.size() - hits + 0.5) / (hits + 0.5));
                int count = Collections.frequency(words(doc, path), term);
                score += rarity * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * words(doc, path).size() / average));
            }
            scores.put(doc.id, score);
        }
        return scores;
    }

    private static Map<String, Double> bm25(String path, String... terms) {
        return bm25(path, DOCS, DOCS, terms);
    }

    /** Fused scores: equal scores share a rank. */
    private static Map<String, Double> rrf(List<Map<String, Double>> components, double... weights) {
        Map<String, Double> fused = new LinkedHashMap<>();
        for (int at = 0; at < components.size(); at++) {
            Map<String, Double> scores = components.get(at);
            List<Double> ranked = scores.values().stream().distinct().sorted(Comparator.reverseOrder()).toList();
            double weight = weights.length == 0 ? 1 : weights[at];
            scores.forEach((id, score) -> fused.merge(id, weight / (61 + ranked.indexOf(score)), Double::sum));
        }
        return fused;
    }

    /** The rows are the best ones in descending order of score; items with equal scores are interchangeable. */
    private static void checkOrder(List<String> rows, Map<String, Double> scores, int many) {
        List<Long> best = scores.values().stream()
            .sorted(Comparator.reverseOrder())
            .limit(many)
            .map(score -> Math.round(score * 1e9))
            .toList();
        assertEquals(best, rows.stream().map(id -> Math.round(scores.get(id) * 1e9)).toList());
    }

    private static void checkRanked(CosmosContainer from) {
        for (String[] terms : new String[][] {{"hammock"}, {"apple"}, {"drum", "elbow", "flint"}}) {
            String quoted = Arrays.stream(terms).map(term -> "'" + term + "'").collect(Collectors.joining(", "));
            String text = "SELECT TOP 30 c.id FROM c ORDER BY RANK FullTextScore(c.text, " + quoted + ")";
            checkOrder(rows(from, text, new CosmosQueryRequestOptions()), bm25("text", terms), 30);
        }
    }

    private static void checkWords(CosmosContainer from) {
        String text = "SELECT c.id FROM c WHERE FullTextContainsAll(c.text, 'cloud', 'flint') ORDER BY c.id";
        List<String> expected = DOCS.stream()
            .filter(doc -> doc.text.contains("cloud") && doc.text.contains("flint"))
            .map(Doc::id)
            .toList();
        assertFalse(expected.isEmpty());
        assertEquals(expected, rows(from, text, new CosmosQueryRequestOptions()));
        String phrase = "SELECT c.id FROM c WHERE FullTextContains(c.text, 'apple apple') ORDER BY c.id";
        List<String> twice =
            DOCS.stream().filter(doc -> String.join(" ", doc.text).contains("apple apple")).map(Doc::id).toList();
        assertEquals(twice, rows(from, phrase, new CosmosQueryRequestOptions()));
    }

    @Test
    void wordsAndPhrases() {
        checkWords(container);
    }

    @Test
    void rankingUsesStatisticsOfTheWholeContainer() {
        checkRanked(container);
    }

    @Test
    void rankingWithinOneKeyUsesGlobalOrLocalStatistics() {
        String text = "SELECT TOP 10 c.id FROM c ORDER BY RANK FullTextScore(c.text, 'cloud', 'grape')";
        List<Doc> one = DOCS.stream().filter(doc -> doc.key.equals("key 3")).toList();
        for (CosmosFullTextScoreScope scope : CosmosFullTextScoreScope.values()) {
            CosmosQueryRequestOptions options = new CosmosQueryRequestOptions().setPartitionKey(new PartitionKey("key 3"));
            options.setFullTextScoreScope(scope);
            List<Doc> statistics = scope == CosmosFullTextScoreScope.GLOBAL ? DOCS : one;
            checkOrder(rows(container, text, options), bm25("text", one, statistics, "cloud", "grape"), 10);
        }
    }

    /**
     * The documents among which no score occurs twice, in no component: this SDK gives equal scores different ranks, in an
     * order that is not guaranteed.
     */
    private static List<Map<String, Double>> withoutTies(List<Map<String, Double>> components) {
        List<Set<Double>> seen = components.stream().map(scores -> (Set<Double>) new HashSet<Double>()).toList();
        List<String> distinct = new ArrayList<>();
        for (Doc doc : DOCS) {
            boolean isNew = IntStream.range(0, components.size())
                .noneMatch(at -> seen.get(at).contains(components.get(at).get(doc.id)));
            if (isNew) {
                IntStream.range(0, components.size()).forEach(at -> seen.get(at).add(components.get(at).get(doc.id)));
                distinct.add(doc.id);
            }
        }
        return components.stream()
            .map(scores -> distinct.stream().collect(Collectors.toMap(id -> id, scores::get)))
            .toList();
    }

    private void checkFused(String scores, String last, List<Map<String, Double>> components, double... weights) {
        List<Map<String, Double>> some = withoutTies(components);
        Map<String, Double> fused = rrf(some, weights);
        assertTrue(fused.size() > 12, "enough documents for an order");
        String ids = fused.keySet().stream().map(id -> "'" + id + "'").collect(Collectors.joining(", "));
        String text = "SELECT TOP 10 c.id FROM c WHERE c.id IN (" + ids + ") ORDER BY RANK RRF(" + scores + last + ")";
        checkOrder(rows(container, text, new CosmosQueryRequestOptions()), fused, 10);
    }

    @Test
    void fusedScoresWithAndWithoutWeights() {
        List<Map<String, Double>> components = List.of(bm25("text", "cloud", "filler"), bm25("text", "apple", "brick", "filler"));
        String scores = "FullTextScore(c.text, 'cloud', 'filler'), FullTextScore(c.text, 'apple', 'brick', 'filler')";
        checkFused(scores, "", components);
        checkFused(scores, ", [3, 1]", components, 3, 1);
    }

    @Test
    void textAndVectors() {
        Map<String, Double> near = new LinkedHashMap<>();
        DOCS.forEach(doc -> near.put(doc.id, -euclidean(doc.v, TO)));
        String scores = "FullTextScore(c.text, 'apple', 'filler'), VectorDistance(c.near, [60, 12])";
        checkFused(scores, "", List.of(bm25("text", "apple", "filler"), near));
    }

    @Test
    void unsupportedQueriesAre400() {
        for (String text : List.of(
            "SELECT TOP 3 c.id FROM c ORDER BY RANK FullTextScore(c.text, 'grape') DESC",
            "SELECT TOP 3 c.id, FullTextScore(c.text, 'grape') AS s FROM c",
            "SELECT TOP 3 c.id FROM c ORDER BY RANK RRF(FullTextScore(c.text, 'a'), FullTextScore(c.title, 'b'), [1])")) {
            refused(400, () -> rows(container, text, new CosmosQueryRequestOptions()));
        }
    }

    /** The ranges that the client has cached no longer exist at the next query. */
    @Test
    void aSplitDoesNotChangeTheResults() {
        CosmosContainer other = filled(12000);
        for (int split = 0; split < 3; split++) {
            checkNearest(other);
            checkWords(other);
            checkRanked(other);
            Management.split(world.database.getId(), other.getId());
        }
        checkNearest(other);
        checkRanked(other);
    }
}
