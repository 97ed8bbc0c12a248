package pleiad;

/** Vector, full-text and hybrid search over http. */
class HttpSearchTest extends SearchSuite {
    HttpSearchTest() {
        super(World.Scheme.HTTP);
    }
}
