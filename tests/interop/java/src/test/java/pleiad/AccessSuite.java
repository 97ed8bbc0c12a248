package pleiad;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static pleiad.World.refused;
import static pleiad.World.unique;

import com.azure.core.credential.AccessToken;
import com.azure.core.credential.TokenCredential;
import com.azure.cosmos.ConsistencyLevel;
import com.azure.cosmos.CosmosAsyncClient;
import com.azure.cosmos.CosmosAsyncUser;
import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosClientBuilder;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.ReadConsistencyStrategy;
import com.azure.cosmos.models.ContainerChildResourceType;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.CosmosPatchOperations;
import com.azure.cosmos.models.CosmosPermissionProperties;
import com.azure.cosmos.models.CosmosPermissionRequestOptions;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.CosmosUserProperties;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.PermissionMode;
import com.azure.cosmos.models.ThroughputProperties;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyFactory;
import java.security.Signature;
import java.security.spec.RSAPrivateKeySpec;
import java.time.Duration;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.util.Base64;
import java.util.List;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Mono;

/** Roles, permissions and sessions, over several partitions; run once per scheme by its subclasses. */
abstract class AccessSuite extends InWorld {
    private static final List<Integer> ALL = List.of(0, 1, 2, 3, 4, 5);

    AccessSuite(World.Scheme scheme) {
        super(scheme);
    }

    private static ObjectNode item(String id, String key, int n) {
        return JSON.createObjectNode().put("id", id).put("pk", key).put("n", n);
    }

    /** Six items under two keys in two partitions. */
    private CosmosContainer shop() {
        CosmosContainer container = world.make(ThroughputProperties.createManualThroughput(12000), "/pk");
        for (int n = 0; n < 6; n++) {
            container.createItem(item("" + n, n % 2 == 0 ? "a" : "b", n));
        }
        return container;
    }

    private void split(CosmosContainer container) {
        Management.split(world.database.getId(), container.getId());
    }

    /** What this client may do with the container. */
    private void as(CosmosClientBuilder builder, CosmosContainer container, Consumer<CosmosContainer> body) {
        try (CosmosClient client = built(builder)) {
            body.accept(client.getDatabase(world.database.getId()).getContainer(container.getId()));
        }
    }

    /** Who may not even see the account hears so when the client is made, in an exception within another. */
    private static CosmosClient built(CosmosClientBuilder builder) {
        try {
            return builder.buildClient();
        } catch (RuntimeException failure) {
            throw failure.getCause() instanceof CosmosException refusal ? refusal : failure;
        }
    }

    private static List<Integer> numbers(CosmosContainer container) {
        String text = "SELECT c.n FROM c ORDER BY c.n";
        return World.rows(container.queryItems(text, new CosmosQueryRequestOptions(), JsonNode.class)).stream()
            .map(row -> row.get("n").asInt())
            .toList();
    }

    private static int read(CosmosContainer container, String id, String key) {
        return container.readItem(id, new PartitionKey(key), ObjectNode.class).getItem().get("n").asInt();
    }

    private static void forbidden(int substatus, org.junit.jupiter.api.function.Executable call) {
        assertEquals(substatus, refused(403, call).getSubStatusCode());
    }

    // ---- roles ------------------------------------------------------------------------------------------

    private static ObjectNode claims(String principal) {
        ObjectNode claims = JSON.createObjectNode().put("iss", "https://issuer.example/").put("oid", principal);
        return claims.put("aud", "https://cosmos.azure.com");
    }

    /** As azure-identity would be one. */
    private CosmosClientBuilder bearing(ObjectNode claims, Duration lives) {
        TokenCredential credential = request -> Mono.fromCallable(() -> {
            claims.put("exp", Instant.now().plus(lives).getEpochSecond());
            // Were it told the truth, the SDK would not send a token that has expired.
            return new AccessToken(signed(claims), OffsetDateTime.now().plusHours(1));
        });
        return World.stranger(scheme).credential(credential);
    }

    private CosmosClientBuilder bearing(ObjectNode claims) {
        return bearing(claims, Duration.ofHours(1));
    }

    /** A JSON Web Token, RS256. */
    private static String signed(ObjectNode claims) throws Exception {
        JsonNode key = JSON.readTree(Files.readString(Path.of(System.getenv("PLEIAD_TOKENS"), "private_key.json")));
        ObjectNode header = JSON.createObjectNode().put("typ", "JWT").put("alg", "RS256");
        header.put("kid", key.get("kid").asText());
        String text = part(header.toString().getBytes(StandardCharsets.UTF_8))
            + "." + part(claims.toString().getBytes(StandardCharsets.UTF_8));
        Signature signature = Signature.getInstance("SHA256withRSA");
        signature.initSign(
            KeyFactory.getInstance("RSA").generatePrivate(new RSAPrivateKeySpec(number(key, "n"), number(key, "d"))));
        signature.update(text.getBytes(StandardCharsets.UTF_8));
        return text + "." + part(signature.sign());
    }

    private static String part(byte[] bytes) {
        return Base64.getUrlEncoder().withoutPadding().encodeToString(bytes);
    }

    private static BigInteger number(JsonNode key, String name) {
        return new BigInteger(1, Base64.getUrlDecoder().decode(key.get(name).asText()));
    }

    @Test
    void aReaderReadsAndDoesNotWrite() {
        CosmosContainer shop = shop();
        as(bearing(claims("reader")), shop, mine -> {
            for (int round = 0; round < 2; round++) {
                assertEquals(0, read(mine, "0", "a"));
                assertEquals(ALL, numbers(mine));
                forbidden(5302, () -> mine.createItem(item("new", "a", 9)));
                forbidden(5302, () -> mine.deleteItem("0", new PartitionKey("a"), null));
                split(shop);
            }
        });
    }

    @Test
    void aContributorWritesAndDoesNotManage() {
        CosmosContainer shop = shop();
        as(bearing(claims("contributor")), shop, mine -> {
            mine.upsertItem(item("new", "a", 9));
            CosmosPatchOperations change = CosmosPatchOperations.create().increment("/n", 1);
            mine.patchItem("new", new PartitionKey("a"), change, ObjectNode.class);
            assertEquals(10, read(mine, "new", "a"));
            mine.deleteItem("new", new PartitionKey("a"), null);
            forbidden(5300, mine::delete);
        });
        assertEquals(ALL, numbers(shop));
    }

    @Test
    void aRoleOfOnesOwnAllowsWhatItSays() {
        CosmosContainer shop = shop();
        as(bearing(claims("collector")), shop, mine -> {
            mine.createItem(item("new", "a", 9));
            forbidden(5302, () -> read(mine, "new", "a"));
        });
        assertEquals(9, read(shop, "new", "a"));
    }

    @Test
    void aGroupCountsAndAStrangerDoesNot() {
        CosmosContainer shop = shop();
        ObjectNode member = claims("somebody");
        member.putArray("groups").add("reader");
        as(bearing(member), shop, mine -> assertEquals(0, read(mine, "0", "a")));
        forbidden(5301, () -> as(bearing(claims("somebody")), shop, mine -> read(mine, "0", "a")));
    }

    @Test
    void aTokenThatIsNotGoodIs401() {
        CosmosContainer shop = shop();
        ObjectNode elsewhere = claims("reader").put("aud", "https://vault.azure.net");
        refused(401, () -> as(bearing(elsewhere), shop, mine -> read(mine, "0", "a")));
        refused(401, () -> as(bearing(claims("reader"), Duration.ofHours(-1)), shop, mine -> read(mine, "0", "a")));
    }

    // ---- permissions ------------------------------------------------------------------------------------

    private CosmosPermissionProperties permit(CosmosContainer container, Consumer<CosmosPermissionProperties> more) {
        try (CosmosAsyncClient client = World.builder(scheme).buildAsyncClient()) {
            String name = unique("u");
            world.database.createUser(new CosmosUserProperties().setId(name));
            CosmosAsyncUser user = client.getDatabase(world.database.getId()).getUser(name);
            CosmosPermissionProperties wanted =
                new CosmosPermissionProperties().setId(unique("p")).setContainerName(container.getId());
            more.accept(wanted);
            CosmosPermissionProperties made =
                user.createPermission(wanted, new CosmosPermissionRequestOptions()).block().getProperties();
            assertTrue(user.readAllPermissions().toStream().anyMatch(one -> one.getId().equals(made.getId())));
            return made;
        }
    }

    @Test
    void s131AContainerToReadAndToWrite() {
        CosmosContainer shop = shop();
        CosmosPermissionProperties reads = permit(shop, wanted -> wanted.setPermissionMode(PermissionMode.READ));
        as(World.stranger(scheme).resourceToken(reads.getToken()), shop, mine -> {
            for (int round = 0; round < 2; round++) {
                assertEquals(1, read(mine, "1", "b"));
                assertEquals(ALL, numbers(mine));
                refused(403, () -> mine.createItem(item("new", "a", 9)));
                split(shop);
            }
            refused(403, mine::delete);
        });
        CosmosPermissionProperties writes = permit(shop, wanted -> wanted.setPermissionMode(PermissionMode.ALL));
        as(World.stranger(scheme).resourceToken(writes.getToken()), shop, mine -> {
            mine.createItem(item("new", "a", 9));
            mine.deleteItem("new", new PartitionKey("a"), null);
            assertEquals(204, mine.delete().getStatusCode());
        });
        refused(404, shop::read);
    }

    @Test
    void s131OnePartitionKeyAndOneItem() {
        CosmosContainer shop = shop();
        CosmosPermissionProperties key = permit(shop, wanted ->
            wanted.setPermissionMode(PermissionMode.ALL).setResourcePartitionKey(new PartitionKey("a")));
        as(World.stranger(scheme).resourceToken(key.getToken()), shop, mine -> {
            assertEquals(2, read(mine, "2", "a"));
            mine.upsertItem(item("2", "a", 22));
            refused(403, () -> read(mine, "1", "b"));
        });
        assertEquals(22, read(shop, "2", "a"));
        CosmosPermissionProperties item = permit(shop, wanted ->
            wanted.setPermissionMode(PermissionMode.READ).setResourcePath(ContainerChildResourceType.ITEM, "1"));
        as(World.stranger(scheme).resourceToken(item.getToken()), shop, mine -> {
            assertEquals(1, read(mine, "1", "b"));
            refused(403, () -> read(mine, "3", "b"));
        });
    }

    // ---- sessions ---------------------------------------------------------------------------------------

    @Test
    void s130WhoIsHandedATokenReadsTheWriteAlsoBehindASplit() {
        CosmosContainer shop = shop();
        as(World.builder(scheme), shop, other -> {
            for (int n = 0; n < 12; n++) {
                if (n % 4 == 3) {
                    split(shop);
                }
                String key = "key " + n;
                String token = shop.createItem(item("x", key, n)).getSessionToken();
                CosmosItemRequestOptions options = new CosmosItemRequestOptions().setSessionToken(token);
                ObjectNode seen = other.readItem("x", new PartitionKey(key), options, ObjectNode.class).getItem();
                assertEquals(n, seen.get("n").asInt());
            }
        });
    }

    @Test
    void s130LessThanTheAccountPromisesMayBeAskedForMoreMayNot() {
        CosmosContainer shop = shop();
        for (ConsistencyLevel level : List.of(ConsistencyLevel.SESSION, ConsistencyLevel.EVENTUAL)) {
            as(World.builder(scheme).consistencyLevel(level), shop, mine -> assertEquals(ALL, numbers(mine)));
        }
        refused(400, () -> as(World.builder(scheme).consistencyLevel(ConsistencyLevel.STRONG), shop, mine -> read(mine, "0", "a")));
    }

    @Test
    void s130ReadStrategies() {
        CosmosContainer shop = shop();
        double one = charge(shop, ReadConsistencyStrategy.EVENTUAL);
        assertEquals(one, charge(shop, ReadConsistencyStrategy.SESSION));
        assertEquals(2 * one, charge(shop, ReadConsistencyStrategy.LATEST_COMMITTED), "two replicas are asked");
        CosmosException refusal = refused(400, () -> charge(shop, ReadConsistencyStrategy.GLOBAL_STRONG));
        assertTrue(refusal.getMessage().contains("GlobalStrong"), refusal.getMessage());
    }

    private static double charge(CosmosContainer container, ReadConsistencyStrategy strategy) {
        CosmosItemRequestOptions options = new CosmosItemRequestOptions().setReadConsistencyStrategy(strategy);
        return container.readItem("0", new PartitionKey("a"), options, ObjectNode.class).getRequestCharge();
    }
}
