import { render } from 'preact'
import { App } from './app.tsx'
import './style.css'

const root = document.querySelector('#app')
if (root !== null) render(<App />, root)
