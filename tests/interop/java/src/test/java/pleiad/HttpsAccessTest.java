package pleiad;

/** Roles, permissions and sessions over https. */
class HttpsAccessTest extends AccessSuite {
    HttpsAccessTest() {
        super(World.Scheme.HTTPS);
    }
}
