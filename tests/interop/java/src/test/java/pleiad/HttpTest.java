package pleiad;

/** The suite over http. */
class HttpTest extends Suite {
    HttpTest() {
        super(World.Scheme.HTTP);
    }
}
