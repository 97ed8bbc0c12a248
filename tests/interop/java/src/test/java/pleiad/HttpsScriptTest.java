package pleiad;

/** Scripts over https. */
class HttpsScriptTest extends ScriptSuite {
    HttpsScriptTest() {
        super(World.Scheme.HTTPS);
    }
}
