package pleiad;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosClientBuilder;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosDatabase;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.PartitionKeyDefinition;
import com.azure.cosmos.models.PartitionKeyDefinitionVersion;
import com.azure.cosmos.models.PartitionKind;
import com.azure.cosmos.models.ThroughputProperties;
import com.azure.cosmos.util.CosmosPagedIterable;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.UUID;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.function.Executable;

/**
 * Sets up the SDK: a client over one scheme, and a database that is deleted when the world is closed.
 *
 * <p>xtask starts the server; PLEIAD_ENDPOINT, PLEIAD_ENDPOINT_HTTPS, PLEIAD_KEY and PLEIAD_CA_FILE say where it is. The
 * SDK is the published one, unmodified, in gateway mode.
 */
final class World implements AutoCloseable {
    enum Scheme { HTTP, HTTPS }

    static {
        // Both must be set before the SDK's first client exists.
        System.setProperty("COSMOS.HTTP_CONNECTION_WITHOUT_TLS_ALLOWED", "true");
        String authority = System.getenv("PLEIAD_CA_FILE");
        if (authority != null) {
            trust(Path.of(authority));
        }
    }

    final Scheme scheme;
    final CosmosClient client;
    final CosmosDatabase database;

    World(Scheme scheme) {
        this.scheme = scheme;
        client = builder(scheme).buildClient();
        String name = unique("java");
        client.createDatabase(name);
        database = client.getDatabase(name);
    }

    static String endpoint(Scheme scheme) {
        return System.getenv(scheme == Scheme.HTTP ? "PLEIAD_ENDPOINT" : "PLEIAD_ENDPOINT_HTTPS");
    }

    static CosmosClientBuilder builder(Scheme scheme) {
        return anonymous(scheme).key(System.getenv("PLEIAD_KEY"));
    }

    /** A client builder without credentials. */
    static CosmosClientBuilder anonymous(Scheme scheme) {
        return new CosmosClientBuilder().endpoint(endpoint(scheme)).gatewayMode().contentResponseOnWriteEnabled(true);
    }

    /**
     * The rows of a query in the order of its pages. When iterating over rows instead of pages, the SDK may return rows of a
     * page before the rest of an earlier one: it flattens pages with {@code flatMap}, which guarantees no order.
     */
    static <T> List<T> rows(CosmosPagedIterable<T> pages) {
        List<T> rows = new ArrayList<>();
        pages.iterableByPage().forEach(page -> rows.addAll(page.getResults()));
        return rows;
    }

    CosmosContainer make(String... paths) {
        return make(null, paths);
    }

    /** A fresh container; more than one path is a hierarchical key. */
    CosmosContainer make(ThroughputProperties throughput, String... paths) {
        CosmosContainerProperties properties = new CosmosContainerProperties(unique("c"), key(paths));
        if (throughput == null) {
            database.createContainer(properties);
        } else {
            database.createContainer(properties, throughput);
        }
        return database.getContainer(properties.getId());
    }

    /** A container with this definition. */
    CosmosContainer define(CosmosContainerProperties properties, int throughput) {
        database.createContainer(properties, ThroughputProperties.createManualThroughput(throughput));
        return database.getContainer(properties.getId());
    }

    static PartitionKeyDefinition key(String... paths) {
        return new PartitionKeyDefinition()
            .setPaths(List.copyOf(Arrays.asList(paths)))
            .setKind(paths.length == 1 ? PartitionKind.HASH : PartitionKind.MULTI_HASH)
            .setVersion(PartitionKeyDefinitionVersion.V2);
    }

    static String unique(String prefix) {
        return prefix + "-" + UUID.randomUUID().toString().substring(0, 13);
    }

    /** The call must fail with this status. */
    static CosmosException refused(int status, Executable call) {
        CosmosException failure = assertThrows(CosmosException.class, call);
        assertEquals(status, failure.getStatusCode(), failure.getMessage());
        return failure;
    }

    /** Waits for something that happens in the background, for at most a minute. */
    static void waitFor(BooleanSupplier holds) {
        Instant end = Instant.now().plus(Duration.ofSeconds(60));
        while (!holds.getAsBoolean()) {
            assertTrue(Instant.now().isBefore(end), "it did not happen within a minute");
            try {
                Thread.sleep(50);
            } catch (InterruptedException interrupted) {
                throw new IllegalStateException(interrupted);
            }
        }
    }

    @Override
    public void close() {
        database.delete();
        client.close();
    }

    /** Creates a trust store with one certificate and sets it as the trust store of this process. */
    private static void trust(Path authority) {
        try (InputStream pem = Files.newInputStream(authority)) {
            KeyStore store = KeyStore.getInstance("PKCS12");
            store.load(null, null);
            store.setCertificateEntry("pleiad", CertificateFactory.getInstance("X.509").generateCertificate(pem));
            Path file = Files.createTempFile("pleiad", ".p12");
            file.toFile().deleteOnExit();
            try (OutputStream out = Files.newOutputStream(file)) {
                store.store(out, "pleiad".toCharArray());
            }
            System.setProperty("javax.net.ssl.trustStore", file.toString());
            System.setProperty("javax.net.ssl.trustStorePassword", "pleiad");
            System.setProperty("javax.net.ssl.trustStoreType", "PKCS12");
        } catch (Exception cause) {
            throw new IllegalStateException("PLEIAD_CA_FILE cannot be trusted", cause);
        }
    }
}
