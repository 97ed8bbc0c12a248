package pleiad;

/** Batch, bulk and patch over http. */
class HttpBatchTest extends BatchSuite {
    HttpBatchTest() {
        super(World.Scheme.HTTP);
    }
}
