package pleiad;

/** What a container can be told to do over https. */
class HttpsFeatureTest extends FeatureSuite {
    HttpsFeatureTest() {
        super(World.Scheme.HTTPS);
    }
}
