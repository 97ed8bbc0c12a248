package pleiad;

/** What a container can be told to do over http. */
class HttpFeatureTest extends FeatureSuite {
    HttpFeatureTest() {
        super(World.Scheme.HTTP);
    }
}
