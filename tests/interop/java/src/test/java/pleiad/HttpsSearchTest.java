package pleiad;

/** Vector, full-text and hybrid search over https. */
class HttpsSearchTest extends SearchSuite {
    HttpsSearchTest() {
        super(World.Scheme.HTTPS);
    }
}
