// npm run console     builds the page of the console into packages/console/dist/page, where `npm start` serves it from
import { buildPage } from '../packages/console/build-page.ts'

await buildPage()
