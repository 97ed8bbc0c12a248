using Pleiad.Interop;

// The argument selects tests by a part of their name.
return await Runner.Run(args.FirstOrDefault() ?? "");
