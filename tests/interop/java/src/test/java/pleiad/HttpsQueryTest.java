package pleiad;

/** Queries over https. */
class HttpsQueryTest extends QuerySuite {
    HttpsQueryTest() {
        super(World.Scheme.HTTPS);
    }
}
