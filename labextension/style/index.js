import './base.css';
import './bidi.css';
