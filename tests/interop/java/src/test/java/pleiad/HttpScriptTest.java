package pleiad;

/** Scripts over http. */
class HttpScriptTest extends ScriptSuite {
    HttpScriptTest() {
        super(World.Scheme.HTTP);
    }
}
