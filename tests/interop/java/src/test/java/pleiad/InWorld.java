package pleiad;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.ObjectMapper;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.TestInstance;

/** What every suite stands in: a world of its own over one scheme, made before its first test and gone after its last. */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
abstract class InWorld {
    static final ObjectMapper JSON = new ObjectMapper();

    final World.Scheme scheme;
    World world;

    InWorld(World.Scheme scheme) {
        this.scheme = scheme;
    }

    @BeforeAll
    void open() {
        assumeTrue(World.endpoint(scheme) != null, "no endpoint was given");
        world = new World(scheme);
    }

    @AfterAll
    void close() {
        if (world != null) {
            world.close();
        }
    }
}
