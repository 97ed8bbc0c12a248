using Pleiad.Interop;

// The argument selects tests by a part of their name.
try
{
    return await Runner.Run(args.FirstOrDefault() ?? "");
}
finally
{
    await World.DeleteDatabase();
}
