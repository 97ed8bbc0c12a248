package pleiad;

/** Features of a container over https. */
class HttpsFeatureTest extends FeatureSuite {
    HttpsFeatureTest() {
        super(World.Scheme.HTTPS);
    }
}
