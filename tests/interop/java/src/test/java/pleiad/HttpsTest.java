package pleiad;

/** The suite over https, with the server's own CA in the trust store. */
class HttpsTest extends Suite {
    HttpsTest() {
        super(World.Scheme.HTTPS);
    }
}
