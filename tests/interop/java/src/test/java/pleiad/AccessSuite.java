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

    /** Runs the body with the container through this client. */
    private void as(CosmosClientBuilder builder, CosmosContainer container, Consumer<CosmosContainer> body) {
        try (CosmosClient client = built(builder)) {
            body.accept(client.getDatabase(world.database.getId()).getContainer(container.getId()));
        }
    }

    /** A client without access to the account fails when it is built, with the error wrapped in another exception. */
    private static CosmosClient built(CosmosClientBuilder builder) {
        try {
            return builder.buildClient();
        } catch (RuntimeException failure) {
            throw failure.getCause() instanceof CosmosException error ? error : failure;
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

    /** A builder with a credential such as those of azure-identity. */
    private CosmosClientBuilder withClaims(ObjectNode claims, Duration lifetime) {
        TokenCredential credential = request -> Mono.fromCallable(() -> {
            claims.put("exp", Instant.now().plus(lifetime).getEpochSecond());
            // With the real expiry time the SDK would not send an expired token.
            return new AccessToken(signed(claims), OffsetDateTime.now().plusHours(1));
        });
        return World.anonymous(scheme).credential(credential);
    }

    private CosmosClientBuilder withClaims(ObjectNode claims) {
        return withClaims(claims, Duration.ofHours(1));
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
    void aReaderMayReadAndNotWrite() {
        CosmosContainer shop = shop();
        as(withClaims(claims("reader")), shop, target -> {
            for (int round = 0; round < 2; round++) {
                assertEquals(0, read(target, "0", "a"));
                assertEquals(ALL, numbers(target));
                forbidden(5302, () -> target.createItem(item("new", "a", 9)));
                forbidden(5302, () -> target.deleteItem("0", new PartitionKey("a"), null));
                split(shop);
            }
        });
    }

    @Test
    void aContributorMayWriteAndNotManage() {
        CosmosContainer shop = shop();
        as(withClaims(claims("contributor")), shop, target -> {
            target.upsertItem(item("new", "a", 9));
            CosmosPatchOperations change = CosmosPatchOperations.create().increment("/n", 1);
            target.patchItem("new", new PartitionKey("a"), change, ObjectNode.class);
            assertEquals(10, read(target, "new", "a"));
            target.deleteItem("new", new PartitionKey("a"), null);
            forbidden(5300, target::delete);
        });
        assertEquals(ALL, numbers(shop));
    }

    @Test
    void aCustomRoleAllowsOnlyItsActions() {
        CosmosContainer shop = shop();
        as(withClaims(claims("collector")), shop, target -> {
            target.createItem(item("new", "a", 9));
            forbidden(5302, () -> read(target, "new", "a"));
        });
        assertEquals(9, read(shop, "new", "a"));
    }

    @Test
    void aRoleOfAGroupAppliesAndAPrincipalWithoutRoleIs403() {
        CosmosContainer shop = shop();
        ObjectNode member = claims("unassigned");
        member.putArray("groups").add("reader");
        as(withClaims(member), shop, target -> assertEquals(0, read(target, "0", "a")));
        forbidden(5301, () -> as(withClaims(claims("unassigned")), shop, target -> read(target, "0", "a")));
    }

    @Test
    void anInvalidTokenIs401() {
        CosmosContainer shop = shop();
        ObjectNode wrongAudience = claims("reader").put("aud", "https://vault.azure.net");
        refused(401, () -> as(withClaims(wrongAudience), shop, target -> read(target, "0", "a")));
        refused(401, () -> as(withClaims(claims("reader"), Duration.ofHours(-1)), shop, target -> read(target, "0", "a")));
    }

    // ---- permissions ------------------------------------------------------------------------------------

    private CosmosPermissionProperties permit(CosmosContainer container, Consumer<CosmosPermissionProperties> more) {
        try (CosmosAsyncClient client = World.builder(scheme).buildAsyncClient()) {
            String name = unique("u");
            world.database.createUser(new CosmosUserProperties().setId(name));
            CosmosAsyncUser user = client.getDatabase(world.database.getId()).getUser(name);
            CosmosPermissionProperties properties =
                new CosmosPermissionProperties().setId(unique("p")).setContainerName(container.getId());
            more.accept(properties);
            CosmosPermissionProperties created =
                user.createPermission(properties, new CosmosPermissionRequestOptions()).block().getProperties();
            assertTrue(user.readAllPermissions().toStream().anyMatch(one -> one.getId().equals(created.getId())));
            return created;
        }
    }

    @Test
    void s131ReadAndAllPermissionsForAContainer() {
        CosmosContainer shop = shop();
        CosmosPermissionProperties reads = permit(shop, properties -> properties.setPermissionMode(PermissionMode.READ));
        as(World.anonymous(scheme).resourceToken(reads.getToken()), shop, target -> {
            for (int round = 0; round < 2; round++) {
                assertEquals(1, read(target, "1", "b"));
                assertEquals(ALL, numbers(target));
                refused(403, () -> target.createItem(item("new", "a", 9)));
                split(shop);
            }
            refused(403, target::delete);
        });
        CosmosPermissionProperties writes = permit(shop, properties -> properties.setPermissionMode(PermissionMode.ALL));
        as(World.anonymous(scheme).resourceToken(writes.getToken()), shop, target -> {
            target.createItem(item("new", "a", 9));
            target.deleteItem("new", new PartitionKey("a"), null);
            assertEquals(204, target.delete().getStatusCode());
        });
        refused(404, shop::read);
    }

    @Test
    void s131PermissionsForOnePartitionKeyAndOneItem() {
        CosmosContainer shop = shop();
        CosmosPermissionProperties key = permit(shop, properties ->
            properties.setPermissionMode(PermissionMode.ALL).setResourcePartitionKey(new PartitionKey("a")));
        as(World.anonymous(scheme).resourceToken(key.getToken()), shop, target -> {
            assertEquals(2, read(target, "2", "a"));
            target.upsertItem(item("2", "a", 22));
            refused(403, () -> read(target, "1", "b"));
        });
        assertEquals(22, read(shop, "2", "a"));
        CosmosPermissionProperties item = permit(shop, properties ->
            properties.setPermissionMode(PermissionMode.READ).setResourcePath(ContainerChildResourceType.ITEM, "1")
                .setResourcePartitionKey(new PartitionKey("b")));
        as(World.anonymous(scheme).resourceToken(item.getToken()), shop, target -> {
            assertEquals(1, read(target, "1", "b"));
            refused(403, () -> read(target, "3", "b"));
        });
    }

    // ---- sessions ---------------------------------------------------------------------------------------

    @Test
    void s130ASessionTokenMakesAWriteVisibleAlsoAfterASplit() {
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
    void s130AWeakerLevelIsAcceptedAndAStrongerOneIs400() {
        CosmosContainer shop = shop();
        for (ConsistencyLevel level : List.of(ConsistencyLevel.SESSION, ConsistencyLevel.EVENTUAL)) {
            as(World.builder(scheme).consistencyLevel(level), shop, target -> assertEquals(ALL, numbers(target)));
        }
        refused(400, () -> as(World.builder(scheme).consistencyLevel(ConsistencyLevel.STRONG), shop, target -> read(target, "0", "a")));
    }

    @Test
    void s130ReadStrategies() {
        CosmosContainer shop = shop();
        double one = charge(shop, ReadConsistencyStrategy.EVENTUAL);
        assertEquals(one, charge(shop, ReadConsistencyStrategy.SESSION));
        assertEquals(2 * one, charge(shop, ReadConsistencyStrategy.LATEST_COMMITTED), "two replicas are read");
        CosmosException error = refused(400, () -> charge(shop, ReadConsistencyStrategy.GLOBAL_STRONG));
        assertTrue(error.getMessage().contains("GlobalStrong"), error.getMessage());
    }

    private static double charge(CosmosContainer container, ReadConsistencyStrategy strategy) {
        CosmosItemRequestOptions options = new CosmosItemRequestOptions().setReadConsistencyStrategy(strategy);
        return container.readItem("0", new PartitionKey("a"), options, ObjectNode.class).getRequestCharge();
    }
}
