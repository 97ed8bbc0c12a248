package pleiad;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.util.Base64;
import java.util.Locale;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/** Client of the management API (docs/management.md). */
final class Management {
    private static final DateTimeFormatter DATE =
        DateTimeFormatter.ofPattern("EEE, dd MMM yyyy HH:mm:ss 'GMT'", Locale.ENGLISH);

    private Management() {}

    /** Splits the largest partition; returns when it has happened. */
    static void split(String database, String container) {
        split(World.endpoint(World.Scheme.HTTP), database, container);
    }

    static void split(String endpoint, String database, String container) {
        call(endpoint, "POST", "containers/" + database + "/" + container + "/partitions/split?wait=true", "{}");
    }

    /** Creates a client encryption key, wrapped like a client would wrap it. */
    static void encryptionKey(String database, String id) {
        String link = "dbs/" + database;
        String body = "{\"id\":\"" + id + "\",\"encryptionAlgorithm\":\"AEAD_AES_256_CBC_HMAC_SHA256\","
            + "\"wrappedDataEncryptionKey\":\"d3JhcHBlZA==\",\"keyWrapMetadata\":{\"name\":\"cmk\","
            + "\"type\":\"AZURE_KEY_VAULT\",\"value\":\"https://vault/key\",\"algorithm\":\"RSA-OAEP\"}}";
        String endpoint = World.endpoint(World.Scheme.HTTP);
        call(endpoint, "POST", "clientencryptionkeys", link, link + "/clientencryptionkeys", body);
    }

    /** The text of the response; an error response throws. */
    static String call(String endpoint, String method, String what, String body) {
        String path = "_pleiad/v1/" + what;
        return call(endpoint, method, "pleiad", path.split("\\?")[0], path, body);
    }

    private static String call(String endpoint, String method, String kind, String link, String path, String body) {
        String date = DATE.format(ZonedDateTime.now(ZoneOffset.UTC));
        String signed = method.toLowerCase(Locale.ROOT)
            + "\n" + kind + "\n" + link + "\n" + date.toLowerCase(Locale.ROOT) + "\n\n";
        try {
            Mac mac = Mac.getInstance("HmacSHA256");
            mac.init(new SecretKeySpec(Base64.getDecoder().decode(System.getenv("PLEIAD_KEY")), "HmacSHA256"));
            String signature = Base64.getEncoder().encodeToString(mac.doFinal(signed.getBytes(StandardCharsets.UTF_8)));
            String token = URLEncoder.encode("type=master&ver=1.0&sig=" + signature, StandardCharsets.UTF_8);
            HttpRequest request = HttpRequest.newBuilder(URI.create(endpoint).resolve("/" + path))
                .header("x-ms-date", date)
                .header("authorization", token)
                .method(method, BodyPublishers.ofString(body))
                .build();
            HttpResponse<String> response = HttpClient.newHttpClient().send(request, BodyHandlers.ofString());
            assertTrue(response.statusCode() < 300, response.statusCode() + " " + response.body());
            return response.body();
        } catch (Exception cause) {
            throw new IllegalStateException("the call of the management API failed", cause);
        }
    }
}
