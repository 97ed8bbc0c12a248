package pleiad;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.ObjectMapper;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.TestInstance;

/** Base class of all suites: a new world over one scheme, created before the first test and closed after the last. */
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
