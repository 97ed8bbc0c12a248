package pleiad;

/** Roles, permissions and sessions over http. */
class HttpAccessTest extends AccessSuite {
    HttpAccessTest() {
        super(World.Scheme.HTTP);
    }
}
