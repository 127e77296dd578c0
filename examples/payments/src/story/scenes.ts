import type { Scene } from './scene.ts'
import { crashAfterCharge } from './scenes/crash-after-charge.ts'
import { doubleClick } from './scenes/double-click.ts'
import { lateWebhook } from './scenes/late-webhook.ts'
import { lostResponse } from './scenes/lost-response.ts'
import { misuse } from './scenes/misuse.ts'
import { providerDown } from './scenes/provider-down.ts'
import { timeoutCharged } from './scenes/timeout-charged.ts'
import { timeoutNotCharged } from './scenes/timeout-not-charged.ts'

export const scenes: readonly Scene[] = [
  doubleClick,
  lostResponse,
  crashAfterCharge,
  providerDown,
  timeoutCharged,
  timeoutNotCharged,
  misuse,
  lateWebhook,
]
