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

/** The server's own interface, asked as docs/management.md says. */
final class Management {
    private static final DateTimeFormatter DATE =
        DateTimeFormatter.ofPattern("EEE, dd MMM yyyy HH:mm:ss 'GMT'", Locale.ENGLISH);

    private Management() {}

    /** Splits the largest partition in two; returns when it has happened. */
    static void split(String database, String container) {
        post("_pleiad/v1/containers/" + database + "/" + container + "/partitions/split", "?wait=true");
    }

    private static void post(String path, String query) {
        String date = DATE.format(ZonedDateTime.now(ZoneOffset.UTC));
        String signed = "post\npleiad\n" + path + "\n" + date.toLowerCase(Locale.ROOT) + "\n\n";
        try {
            Mac mac = Mac.getInstance("HmacSHA256");
            mac.init(new SecretKeySpec(Base64.getDecoder().decode(System.getenv("PLEIAD_KEY")), "HmacSHA256"));
            String signature = Base64.getEncoder().encodeToString(mac.doFinal(signed.getBytes(StandardCharsets.UTF_8)));
            String token = URLEncoder.encode("type=master&ver=1.0&sig=" + signature, StandardCharsets.UTF_8);
            URI address = URI.create(World.endpoint(World.Scheme.HTTP)).resolve("/" + path + query);
            HttpRequest request = HttpRequest.newBuilder(address)
                .header("x-ms-date", date)
                .header("authorization", token)
                .POST(BodyPublishers.ofString("{}"))
                .build();
            HttpResponse<String> answer = HttpClient.newHttpClient().send(request, BodyHandlers.ofString());
            assertTrue(answer.statusCode() < 300, answer.statusCode() + " " + answer.body());
        } catch (Exception cause) {
            throw new IllegalStateException("the management interface cannot be asked", cause);
        }
    }
}
