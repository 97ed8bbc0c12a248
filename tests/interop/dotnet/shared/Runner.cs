using System.Reflection;

namespace Pleiad.Interop;

/// <summary>Marks a test: a public static method that returns a Task.</summary>
[AttributeUsage(AttributeTargets.Method)]
sealed class TestAttribute : Attribute { }

/// <summary>A failed comparison.</summary>
sealed class FailedException(string message) : Exception(message) { }

/// <summary>Runs the tests of this assembly whose name contains the argument, one after the other, each with a deadline.</summary>
static class Runner
{
    static readonly TimeSpan Deadline = TimeSpan.FromMinutes(2);

    public static async Task<int> Run(string filter)
    {
        var tests = Assembly.GetExecutingAssembly().GetTypes()
            .SelectMany(type => type.GetMethods(BindingFlags.Public | BindingFlags.Static))
            .Where(method => method.GetCustomAttribute<TestAttribute>() != null)
            .Where(method => Name(method).Contains(filter, StringComparison.OrdinalIgnoreCase))
            .OrderBy(Name, StringComparer.Ordinal)
            .ToList();
        var failed = 0;
        foreach (var test in tests)
        {
            try
            {
                await ((Task)test.Invoke(null, null)).WaitAsync(Deadline);
            }
            catch (Exception cause)
            {
                failed++;
                var reason = cause is TargetInvocationException { InnerException: { } inner } ? inner : cause;
                Console.WriteLine($"FAILED {Name(test)}\n{Describe(reason)}\n");
            }
        }
        Console.WriteLine($"{tests.Count - failed} of {tests.Count} tests passed");
        return failed == 0 && tests.Count > 0 ? 0 : 1;
    }

    /// <summary>The message, and where in this suite it happened; the SDK's own text is pages long.</summary>
    static string Describe(Exception reason)
    {
        var frames = (reason.StackTrace ?? "").Split('\n').Where(frame => frame.Contains("Pleiad.Interop"));
        var message = $"{reason.GetType().Name}: {reason.Message} {reason.InnerException?.Message}";
        return reason is FailedException ? reason.Message : $"{Check.Shorten(message)}\n{string.Join('\n', frames)}";
    }

    static string Name(MethodInfo method) => $"{method.DeclaringType.Name}.{method.Name}";
}

/// <summary>Comparisons.</summary>
static class Check
{
    public static void True(bool holds, string what)
    {
        if (!holds) throw new FailedException(what);
    }

    public static void Equal<T>(T expected, T got, string what = "")
    {
        True(EqualityComparer<T>.Default.Equals(expected, got), $"{what}: expected {expected}, got {got}");
    }

    /// <summary>The same rows in the same order.</summary>
    public static void Sequence<T>(IEnumerable<T> expected, IEnumerable<T> got, string what)
    {
        var (want, have) = (expected.ToList(), got.ToList());
        if (!want.SequenceEqual(have))
            throw new FailedException($"{what}:\n  expected {want.Count}: {Shorten(want)}\n  got {have.Count}: {Shorten(have)}");
    }

    /// <summary>The same rows, each as often, in any order.</summary>
    public static void Bag(IEnumerable<string> expected, IEnumerable<string> got, string what) =>
        Sequence(expected.Order(StringComparer.Ordinal), got.Order(StringComparer.Ordinal), what);

    /// <summary>The call must fail with an exception for which this holds.</summary>
    public static async Task<TException> Throws<TException>(Func<Task> call, Func<TException, bool> expected, string what)
        where TException : Exception
    {
        try
        {
            await call();
        }
        catch (TException error) when (expected(error))
        {
            return error;
        }
        catch (Exception other)
        {
            throw new FailedException($"{what}: another error: {Shorten(other.Message)}");
        }
        throw new FailedException($"{what}: no error");
    }

    static string Shorten<T>(List<T> rows) => Shorten(string.Join(" ", rows));

    public static string Shorten(string text) => text.Length <= 1500 ? text : text[..1500] + " …";
}
