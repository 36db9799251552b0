/** For `vi.waitFor` and `expect.poll` of what takes moments: so long that a busy machine is no failure, where their default is one second. */
export const PATIENCE = { timeout: 60_000 };
