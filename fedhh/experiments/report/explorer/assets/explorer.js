"use strict";(()=>{console.log(1);})();
