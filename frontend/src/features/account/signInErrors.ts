/** Why a sign-in by OpenID Connect did not succeed, as the service reports it. */
export const SIGN_IN_ERRORS = [
  'denied',
  'expired',
  'failed',
  'name_taken',
  'no_role',
  'unavailable',
  'unknown',
  'wait',
] as const;

export type SignInError = (typeof SIGN_IN_ERRORS)[number];
