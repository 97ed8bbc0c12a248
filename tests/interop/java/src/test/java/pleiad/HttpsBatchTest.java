package pleiad;

/** Batch, bulk and patch over https. */
class HttpsBatchTest extends BatchSuite {
    HttpsBatchTest() {
        super(World.Scheme.HTTPS);
    }
}
