package pleiad;

/** The change feed over http. */
class HttpChangeFeedTest extends ChangeFeedSuite {
    HttpChangeFeedTest() {
        super(World.Scheme.HTTP);
    }
}
