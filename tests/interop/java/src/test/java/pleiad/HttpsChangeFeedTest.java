package pleiad;

/** The change feed over https. */
class HttpsChangeFeedTest extends ChangeFeedSuite {
    HttpsChangeFeedTest() {
        super(World.Scheme.HTTPS);
    }
}
