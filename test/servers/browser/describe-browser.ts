import { describeOwn, whyMissing } from '../brokers/describe-own.ts'
import { type Chromium, findChromium, startChromium } from './chromium.ts'

/** A suite with a Chromium of its own. */
export function describeBrowser(name: string, define: (own: { readonly server: Chromium }) => void): void {
  describeOwn(name, { whyMissing: whyMissing(findChromium()), start: startChromium }, define)
}
