package pleiad;

/** Queries over http. */
class HttpQueryTest extends QuerySuite {
    HttpQueryTest() {
        super(World.Scheme.HTTP);
    }
}
