package pleiad;

/** Features of a container over http. */
class HttpFeatureTest extends FeatureSuite {
    HttpFeatureTest() {
        super(World.Scheme.HTTP);
    }
}
