/** Prints the addon's status, switched off if told so. */
if (process.argv[2] === 'off') process.env['ONESIDED_NO_ADDON'] = '1';
const { nativeStatus } = await import('../../../src/native.ts');
console.log(JSON.stringify(nativeStatus()));

export {};
