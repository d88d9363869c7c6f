/** Whether windows of this rank go by requests: on devices, and where a test wants it. */
const provider = process.env['ONESIDED_PROVIDER'] ?? 'emulator';

/** What libfabric's endpoints lack, and other devices have. */
export const HAS_DATAGRAMS = provider !== 'libfabric';

export const BY_REQUESTS = provider !== 'emulator' || (process.env['ONESIDED_DEBUG'] ?? '').includes('requests');
